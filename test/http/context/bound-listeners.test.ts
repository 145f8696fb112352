import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, once } from 'node:events';
import http, { type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { id as rTracerId, runWithId } from 'cls-rtracer';
import type { Express, RequestHandler } from 'express';
import { createLocks, currentTrace, type Locks, MemoryStore, runInTrace } from 'reenlock';
import { traceContext } from 'reenlock/express';
import supertest from 'supertest';
import { copyOf, expresses } from '../../support/http/native.ts';

const whoAmI = (): unknown[] => [currentTrace()?.traceId, rTracerId()];

describe.each(expresses)('%s: listeners of a request or its response', (_, create) => {
  let locks: Locks;
  beforeEach(() => {
    locks = createLocks({ store: new MemoryStore() });
  });
  afterEach(() => locks.close());

  const trace = (): RequestHandler => traceContext({ locks, trust: 'all' }) as RequestHandler;
  const traced = (): Express => create().use(trace());
  const get = (app: RequestListener): supertest.Test => supertest(app).get('/').set('X-Trace-Id', 'mine').expect(200);
  const nobody = [undefined, undefined];
  const mine = ['mine', 'mine'];

  /** Calls `listen` in a handler, and emits `drawn` on both where nobody's context is; then the handler answers. */
  async function drawn(app: Express, listen: (emitter: EventEmitter) => void): Promise<[EventEmitter, EventEmitter]> {
    const handlers = new EventEmitter();
    app.use((req, res) => {
      try {
        for (const emitter of [req, res]) listen(emitter);
        handlers.emit('begun', req, res);
      } catch (error) {
        handlers.emit('error', error);
        res.end();
      }
    });
    const server = http.createServer(app).listen(0);
    await once(server, 'listening');
    const begun = once(handlers, 'begun');
    const answer = supertest(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).get('/');
    const answered = answer.set('X-Trace-Id', 'mine').then(({ status }) => status);
    try {
      const [req, res] = await begun;
      for (const emitter of [req, res]) emitter.emit('drawn');
      res.end();
      return [req, res];
    } finally {
      expect(await answered).toBe(200);
      server.close();
    }
  }

  it.each(['on', 'addListener', 'prependListener', 'once', 'prependOnceListener'] as const)(
    'A listener added by `%s` runs in the context of the request, with its emitter as `this`',
    async (method) => {
      const seen: unknown[] = [];
      const emitters = await drawn(traced(), (emitter) =>
        emitter[method]('drawn', function (this: unknown) {
          seen.push(this, whoAmI());
        }),
      );
      expect(seen).toEqual([emitters[0], mine, emitters[1], mine]);
      const left = method.includes('nce') ? 0 : 1;
      expect(emitters.map((emitter) => emitter.listenerCount('drawn'))).toEqual([left, left]);
    },
  );

  it.each(
    (['on', 'addListener', 'prependListener', 'once', 'prependOnceListener'] as const).flatMap((add) => [
      [add, 'off' as const],
      [add, 'removeListener' as const],
    ]),
  )('A listener added by `%s` is visible to others as it was given, and `%s` removes it', async (add, remove) => {
    const listener = jest.fn();
    await drawn(traced(), (emitter) => {
      const added = jest.fn();
      emitter.once('newListener', added)[add]('drawn', listener);
      expect(added.mock.calls).toEqual([['drawn', listener]]);
      expect(emitter.listeners('drawn')).toEqual([listener]);
      expect(emitter.listenerCount('drawn', listener)).toBe(1);
      emitter[remove]('drawn', listener);
      expect(emitter.listenerCount('drawn')).toBe(0);
      expect(() => emitter.on('drawn', undefined as never)).toThrow('"listener"');
    });
    expect(listener).not.toHaveBeenCalled();
  });

  it('A bound listener can be removed if another installed copy of this package traces the request, too', async () => {
    let copy = traceContext;
    jest.isolateModules(() => {
      copy = jest.requireActual<{ traceContext: typeof traceContext }>('reenlock/express').traceContext;
    });
    const listener = jest.fn();
    await drawn(traced().use(copy() as RequestHandler), (emitter) => {
      emitter.on('drawn', listener).off('drawn', listener);
      emitter.once('drawn', listener).off('drawn', listener);
    });
    expect(listener).not.toHaveBeenCalled();
  });

  it('A bound listener can be removed on each request if middleware above wraps the methods of each, as cls-hooked does', async () => {
    const wrap: RequestHandler = (req, res, next) => {
      for (const emitter of [req, res] as EventEmitter[]) {
        for (const name of ['on', 'addListener'] as const) {
          const original = emitter[name];
          emitter[name] = (...args) => Reflect.apply(original, emitter, args);
        }
      }
      next();
    };
    const app = create().use(wrap, trace());
    await get(traced().use((_req, res) => void res.send()));
    const removed = jest.fn();
    const seen: unknown[] = [];
    await drawn(app, (emitter) => {
      for (const add of ['on', 'addListener', 'once', 'prependListener', 'prependOnceListener'] as const)
        emitter[add]('drawn', removed).off('drawn', removed);
      emitter.on('drawn', () => seen.push(whoAmI()));
    });
    expect(removed).not.toHaveBeenCalled();
    expect(seen).toEqual([mine, mine]);
  });

  it('A listener added by `once` runs once, even if it emits the event itself, or is called by `rawListeners`', async () => {
    const seen: unknown[] = [];
    await drawn(traced(), (emitter) => {
      emitter.once('drawn', (depth: number | undefined) => seen.push(depth) && emitter.emit('drawn', 2));
      emitter.emit('drawn', 1);
      emitter.once('raw', () => seen.push('raw'));
      const [raw] = emitter.rawListeners('raw');
      raw?.();
      raw?.();
      expect(emitter.listenerCount('raw')).toBe(0);
    });
    expect(seen).toEqual([1, 'raw', 1, 'raw']);
  });

  it('Listeners added by `prependListener` and `prependOnceListener` run before those that were there', async () => {
    const seen: unknown[] = [];
    await drawn(traced(), (emitter) => {
      emitter.on('drawn', () => seen.push('on'));
      emitter.prependListener('drawn', () => seen.push('prepended'));
      emitter.prependOnceListener('drawn', () => seen.push('prepended last'));
    });
    const order = ['prepended last', 'prepended', 'on'];
    expect(seen).toEqual([...order, ...order]);
  });

  it('A listener that is added when the work has ended has no owner', async () => {
    const seen: unknown[] = [];
    const closed = new EventEmitter();
    const app = traced().use((_req, res) => {
      res.on('finish', () => {
        seen.push(whoAmI());
        res.on('drawn', () => seen.push(whoAmI()));
        closed.emit('finish', res);
      });
      res.end();
    });
    const finished = once(closed, 'finish');
    await get(app);
    (await finished)[0].emit('drawn');
    expect(seen).toEqual([mine, nobody]);
  });

  it('A bound listener sees what other middleware has put into the async context', async () => {
    const others = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    const app = traced().use((_req, _res, next) => others.run('theirs', next));
    await drawn(app, (emitter) => emitter.on('drawn', () => seen.push(others.getStore(), whoAmI())));
    expect(seen).toEqual(['theirs', mine, 'theirs', mine]);
  });

  it('A listener that is added in another async context still runs in that of its request', async () => {
    const seen: unknown[] = [];
    await drawn(traced(), (emitter) =>
      runWithId(() => {
        void runInTrace(() => emitter.on('drawn', () => seen.push(whoAmI())), { traceId: 'job', locks });
      }, 'other'),
    );
    expect(seen).toEqual([mine, mine]);
  });

  it('Listeners are not touched if no `traceContext` has seen the request', async () => {
    await get(traced().use((_req, res) => void res.send()));
    const seen: unknown[] = [];
    const listener = (): number => seen.push(whoAmI());
    await drawn(create(), (emitter) => {
      emitter.on('drawn', listener);
      expect(emitter.rawListeners('drawn')).toEqual([listener]);
    });
    expect(seen).toEqual([nobody, nobody]);
  });

  it.each([['request'], ['response'], ['request', 'response']] as const)(
    'Listeners are bound, too, if an application has its own `on`: %s %s',
    async (...names) => {
      const app = create();
      const calls = jest.fn();
      for (const own of names.map((name) => app[name])) {
        const { on } = own;
        own.on = function (this: EventEmitter, ...args: Parameters<typeof on>) {
          calls(args[0]);
          return Reflect.apply(http.IncomingMessage.prototype.on, this, args);
        } as typeof on;
      }
      const seen: unknown[] = [];
      await drawn(app.use(trace()), (emitter) => emitter.on('drawn', () => seen.push(whoAmI())));
      expect(seen).toEqual([mine, mine]);
      expect(calls).toHaveBeenCalledWith('drawn');
    },
  );

  it.each([
    ['at once', (run: () => void) => run()],
    ['later', (run: () => void) => void setImmediate(run)],
  ])(
    'Listeners are bound, too, in another copy of Express, from its second request on, if it is called %s',
    async (_, call) => {
      const other = copyOf(create)();
      const seen: unknown[] = [];
      other.use((req, res) => {
        req.on('drawn', () => seen.push(whoAmI()));
        setImmediate(() => outside.run(undefined, () => res.send()));
        emitters.push(req);
      });
      const outside = new AsyncLocalStorage<undefined>();
      const emitters: EventEmitter[] = [];
      const app = traced().use((req, res, next) => call(() => other(req, res, next)));
      await get(app);
      await get(app);
      emitters[1]?.emit('drawn');
      expect(seen).toEqual([mine]);
    },
  );
});
