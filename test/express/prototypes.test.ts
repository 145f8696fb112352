import { EventEmitter, once } from 'node:events';
import http, { IncomingMessage, type RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Express, Request, RequestHandler } from 'express';
import { createLocks, type Hold, type Locks, MemoryStore } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import supertest from 'supertest';
import { copyOf, expresses } from '../support/http/native.ts';
import { recordWarnings } from '../support/warnings.ts';

const warnings = recordWarnings();

/** A hold, or the holds by key, as keys; what the application has put there, as it is. */
function shown(value: unknown): unknown {
  if (value instanceof Map) return [...value.keys()].join();
  return (value as Partial<Hold> | undefined)?.key ?? value;
}

describe.each(expresses)('%s, whose prototypes carry what is for all requests', (_, create) => {
  let store: MemoryStore;
  let locks: Locks;
  beforeEach(() => {
    store = new MemoryStore();
    locks = createLocks({ store });
  });
  afterEach(() => locks.close());

  const isFree = async (key: string): Promise<boolean> => (await store.inspect(key)).holds.length === 0;
  const traced = (): Express => create().use(traceContext({ locks, trust: 'none' }) as RequestHandler);
  const guard = lockOn('k') as unknown as RequestHandler;
  const get = (app: RequestListener, path = '/'): supertest.Test => supertest(app).get(path);

  async function released(app: RequestListener, path?: string): Promise<void> {
    for (let request = 0; request < 2; request += 1) {
      await get(app, path).expect(200);
      await new Promise(setImmediate);
      expect(await isFree('k')).toBe(true);
    }
  }

  it("Node's own prototypes stay as they are", async () => {
    const before = [ServerResponse.prototype, IncomingMessage.prototype].map(Object.getOwnPropertyDescriptors);
    await released(traced().get('/', guard, (_req, res) => void res.send()));
    expect([ServerResponse.prototype, IncomingMessage.prototype].map(Object.getOwnPropertyDescriptors)).toEqual(before);
  });

  it('what is put under them later is still called, as a tool does that runs applications without a server', async () => {
    const copy = copyOf(create);
    const app = copy()
      .use(traceContext({ locks, trust: 'none' }) as RequestHandler)
      .get('/', guard, (_req, res) => void res.send('answer'));
    await released(app);
    const ended: unknown[] = [];
    const under = Object.create(ServerResponse.prototype, {
      end: {
        value(this: ServerResponse, ...args: Parameters<ServerResponse['end']>) {
          ended.push(String(args[0]));
          return ServerResponse.prototype.end.apply(this, args);
        },
      },
    });
    Object.setPrototypeOf(copy.response, under);
    await released(app);
    expect(ended).toEqual(['answer', 'answer']);
  });

  it('Neither a request nor its response, nor one with listeners, gets its own property', async () => {
    const names: string[] = [];
    await released(
      traced().get('/', guard, (req, res) => {
        req.on('close', () => undefined);
        res.on('close', () => undefined);
        names.push(...Object.keys(res), ...Object.keys(req));
        res.send();
      }),
    );
    for (const name of ['end', 'destroy', 'lock', 'on', 'addListener', 'prependListener', 'off', 'removeListener'])
      expect(names).not.toContain(name);
  });

  it('sees the end where an application has its own `end` that knows no other', async () => {
    const app = traced();
    Object.assign(app.response, {
      end(this: ServerResponse, ...args: unknown[]) {
        return Reflect.apply(ServerResponse.prototype.end, this, args);
      },
    });
    await released(app.get('/', guard, (_req, res) => void res.send()));
  });

  it('sees the end where middleware before has wrapped that of the response', async () => {
    const wrapping: RequestHandler = (_req, res, next) => {
      const { end } = res;
      res.end = ((...args: unknown[]) => Reflect.apply(end, res, args)) as typeof res.end;
      next();
    };
    const app = create().use(wrapping, traceContext({ locks, trust: 'none' }) as RequestHandler);
    await get(app).expect(404);
    const { end } = create.response;
    await released(app.get('/', guard, (_req, res) => void res.send()));
    // It is wrapped once, not with each request.
    expect(create.response.end).toBe(end);
  });

  it('sees the end outside of the sub-application that has the `traceContext`', async () => {
    const inner = traced().use(guard, (_req, _res, next) => next());
    const outer = create()
      .use('/sub', inner)
      .use((_req, res) => void res.send());
    await released(outer, '/sub');
  });

  it('sees the end there at once, before the response is closed', async () => {
    const seen: boolean[] = [];
    const inner = traced().use(guard, (_req, _res, next) => next());
    const outer = create()
      .use('/sub', inner)
      .use(async (_req, res) => {
        await undefined;
        res.send();
        // Nothing but microtasks is run until then.
        for (let turn = 0; turn < 10; turn += 1) await undefined;
        seen.push(await isFree('k'));
      });
    await get(outer, '/sub').expect(200);
    expect(seen).toEqual([true]);
  });

  it('sees the end, once the response is closed, where another copy of Express answers with prototypes of its own', async () => {
    const lost = jest.fn();
    locks.on('lost', lost);
    const other = copyOf(create)().use((_req, res) => void res.send());
    await released(traced().use(guard, (req, res, next) => void setImmediate(() => other(req, res, next))));
    expect(lost).not.toHaveBeenCalled();
  });

  it('sees the end of another copy of Express at once, once its client has disconnected; and it has `req.lock`', async () => {
    const seen: unknown[] = [];
    const handlers = new EventEmitter();
    const other = copyOf(create)().use((req, res) => {
      res.on('close', () => handlers.emit('left'));
      handlers.once('answer', () => {
        seen.push(req.lock?.key);
        res.end();
      });
      handlers.emit('begun');
    });
    const server = http.createServer(traced().use(guard, (req, res, next) => other(req, res, next))).listen(0);
    const begun = once(handlers, 'begun');
    const client = http.get(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).on('error', () => {});
    await begun;
    const left = once(handlers, 'left');
    client.destroy();
    await left;
    expect(await isFree('k')).toBe(false);
    handlers.emit('answer');
    await new Promise(setImmediate);
    expect(await isFree('k')).toBe(true);
    expect(seen).toEqual(['k']);
    server.close();
  });

  it('keeps the lock when a part of the response is rendered by the same request, with its own response', async () => {
    const part = traced().use(guard, (_req, res) => void res.send('part'));
    const held: boolean[] = [];
    const app = traced().get('/', guard, (req, res) => {
      part(req, new ServerResponse(req) as typeof res);
      setImmediate(() => {
        held.push(req.lock?.isHeld() ?? false);
        res.send();
      });
    });
    await released(app);
    expect(held).toEqual([true, true]);
  });

  it('what no `traceContext` has seen ends as ever, and has no lock', async () => {
    await released(traced().get('/', guard, (_req, res) => void res.send()));
    const other = create().get('/', (req, res) => void res.json([req.lock, req.locks].map(String)));
    const { body } = await get(other).expect(200);
    expect(body).toEqual(['undefined', 'undefined']);
  });

  it('`req.lock` is the newest hold, `req.locks` all by key; what is assigned stays the request’s own', async () => {
    const seen: unknown[] = [];
    const second = lockOn('second') as unknown as RequestHandler;
    const app = traced().get('/', guard, second, (req, res) => {
      seen.push(
        req.lock?.key,
        [...(req.locks ?? [])].map(([key, hold]) => [key, hold.isHeld()]),
      );
      req.lock = { key: 'assigned before' } as Hold;
      req.lock = { key: 'assigned' } as Hold;
      seen.push(req.lock.key, Object.hasOwn(req, 'lock'));
      res.send();
    });
    await get(app).expect(200);
    const held = [
      ['k', true],
      ['second', true],
    ];
    expect(seen).toEqual(['second', held, 'assigned', true]);
  });

  it('what was made of a request by `Object.create` has its `req.lock`, unless `traceContext` has seen it, too', async () => {
    const seen: unknown[] = [];
    const look = ({ lock, locks: all }: Request): void => void seen.push([lock?.key, ...(all?.keys() ?? [])]);
    const app = traced().get('/', guard, (req, res) => {
      const made: Request = Object.create(req);
      look(made);
      look(Object.create(made));
      const part = new ServerResponse(made);
      traceContext({ locks })(made, part, () => look(made));
      part.end();
      look(Object.create(made));
      look(req);
      res.send();
    });
    await released(app);
    const expected = [['k', 'k'], ['k', 'k'], [undefined], [undefined], ['k', 'k']];
    expect(seen).toEqual([...expected, ...expected]);
  });

  it.each([
    ['lock', 'an application has on its requests'],
    ['locks', 'an application has on its requests'],
    ['lock', 'all requests of Express have'],
    ['locks', 'all requests of Express have'],
  ] as const)(
    'A property `%s` that %s is left alone, with one warning, and the other one is shown',
    async (name, whose) => {
      const isOfAll = whose.startsWith('all');
      const copy = isOfAll ? copyOf(create) : create;
      if (isOfAll) Object.assign(copy.request, { [name]: 'theirs' });
      const app = copy().use(traceContext({ locks, trust: 'none' }) as RequestHandler);
      if (!isOfAll) Object.defineProperty(app.request, name, { value: 'theirs', writable: true, configurable: true });
      const found: unknown[] = [];
      app.get('/before', (req, res) => void res.send(String(req[name])));
      app.get('/', guard, (req, res) => {
        found.push(shown(req.lock), shown(req.locks));
        res.send();
      });
      expect((await get(app, '/before')).text).toBe('theirs');
      await released(app);
      const once = name === 'lock' ? ['theirs', 'k'] : ['k', 'theirs'];
      expect([found, app.request[name]]).toEqual([[...once, ...once], 'theirs']);
      expect(warnings().map(({ code }) => code)).toEqual(['LOCK_NAME_TAKEN']);
    },
  );
});
