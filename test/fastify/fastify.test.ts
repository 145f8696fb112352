import type { AddressInfo } from 'node:net';
import replyFrom from '@fastify/reply-from';
import fastify, { type FastifyInstance } from 'fastify';
import { createLocks, getLock, type Locks, lock, runInTrace } from 'reenlock';
import * as express from 'reenlock/express';
import { closeServer, lockBoard, lockOn, sendProblem, traceContext } from 'reenlock/fastify';
import { createTestLocks } from 'reenlock/testing';
import { gate } from '../support/gate.ts';
import { pathOf } from '../support/path-of.ts';
import { until } from '../support/until.ts';

let locks: Locks;
let app: FastifyInstance;

/** Sends a request to the application on a server of its own. */
async function ask(path: string, init?: RequestInit): Promise<{ status: number; headers: Headers; text: string }> {
  const { port } = (app.server.address() ?? {}) as Partial<AddressInfo>;
  const url = port === undefined ? await app.listen({ port: 0, host: '127.0.0.1' }) : `http://127.0.0.1:${port}`;
  const response = await fetch(url + path, { ...init, headers: { ...init?.headers, Connection: 'close' } });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

describe('Fastify', () => {
  beforeEach(() => {
    locks = createLocks();
    app = fastify();
  });
  afterEach(async () => {
    await app.close();
    await locks.close({ drainMs: 0 });
  });

  it('A guard takes its key from a body that Fastify has parsed, within the request’s own context', async () => {
    app.register(traceContext({ locks, trust: 'all' }));
    const guard = lockOn((request) => (request.body as { id: string }).id);
    app.post('/orders', { preHandler: guard }, async ({ lock: held }) => ({
      key: held?.key,
      owner: await getLock('42').run(pathOf),
    }));
    const { text } = await ask('/orders', {
      method: 'POST',
      body: JSON.stringify({ id: '42' }),
      headers: { 'Content-Type': 'application/json', 'X-Trace-Id': 'mine' },
    });
    expect(JSON.parse(text)).toEqual({ key: '42', owner: 'mine' });
  });

  it('A plugin that registers traceContext gives it to all routes of the instance, and twice is as once', async () => {
    app.register(async (child) => {
      child.register(traceContext({ locks })).register(traceContext({ locks }));
      child.get('/inside', { preHandler: lockOn('k') }, ({ lock: held }) => held?.key);
    });
    app.get('/outside', { preHandler: lockOn('k') }, () => 'in');
    const [inside, outside] = [await ask('/inside'), await ask('/outside')];
    expect([inside.text, inside.headers.get('x-trace-id')]).toEqual(['k', expect.any(String)]);
    expect([outside.status, JSON.parse(outside.text).code]).toEqual([500, 'ERR_LOCK_SCOPE']);
  });

  it('Two boards at one place are an error of `app.ready()`, which names the place', async () => {
    for (let count = 0; count < 2; count += 1) {
      app.register(lockBoard({ locks, authorize: () => false }), { prefix: '/locks' });
    }
    await expect(app.ready()).rejects.toThrow("already declared for route '/locks'");
  });

  it('sendProblem as the error handler describes lock errors, and leaves others to Fastify', async () => {
    app.register(traceContext({ locks })).setErrorHandler(sendProblem);
    app.get('/locked', () => lock.acquire(''));
    app.get('/other', () => Promise.reject(new Error('own trouble')));
    const [locked, other] = [await ask('/locked'), await ask('/other')];
    expect([locked.status, locked.headers.get('content-type')]).toEqual([400, 'application/problem+json']);
    expect(JSON.parse(other.text)).toMatchObject({ statusCode: 500, message: 'own trouble' });
  });

  it('sendProblem removes the headers of another body that were set on the reply', async () => {
    app.register(traceContext({ locks })).setErrorHandler(sendProblem);
    app.get('/', (_, reply) => {
      reply.headers({ 'Content-Encoding': 'gzip', 'Content-Language': 'de', 'Content-Range': 'bytes 0-1/2' });
      return lock.acquire('');
    });
    const { headers, text } = await ask('/');
    for (const name of ['content-encoding', 'content-language', 'content-range']) expect(headers.has(name)).toBe(false);
    expect(JSON.parse(text)).toMatchObject({ code: 'ERR_LOCK_KEY' });
  });

  it('closeServer lets a holder respond, runs the onClose hooks after that, and closes the locks', async () => {
    const [inside, work] = [gate(), gate()];
    const seen: string[] = [];
    app.register(traceContext({ locks })).addHook('onClose', async () => void seen.push('closed'));
    app.get('/', { preHandler: lockOn('k') }, async () => {
      inside.open();
      await work;
      seen.push('answered');
      return 'done';
    });
    const answer = fetch(await app.listen({ port: 0, host: '127.0.0.1' }));
    await inside;
    const closed = closeServer(app, locks);
    work.open();
    expect(await (await answer).text()).toBe('done');
    await closed;
    expect(seen).toEqual(['answered', 'closed']);
    await expect(runInTrace(() => lock.acquire('k'), { locks })).rejects.toMatchObject({ code: 'ERR_LOCK_CLOSED' });
  });

  it.each([
    ['traceContext()', traceContext],
    ['lockBoard({ authorize })', lockBoard],
  ])('A plugin that is registered without the call %s names that call', (call, factory) => {
    const name = factory.name;
    expect(() => Reflect.apply(factory, undefined, [app, {}, () => {}])).toThrow(
      `Expected \`${call}\` to be mounted, got \`${name}\` itself, which was called with an instance of Fastify: call it first`,
    );
  });

  it('closeServer asks for the application if it gets its server', async () => {
    await expect(closeServer(app.server as never, locks)).rejects.toThrow(
      'Expected `app` to be an application of Fastify, got none: pass it instead of its `server`',
    );
  });

  it('Express within Fastify shares one scope with it: both adapters have one core', async () => {
    app.register(traceContext({ locks }));
    const inner = express.lockOn('k');
    app.get('/', { preHandler: lockOn('k') }, (request, reply) => {
      inner(request.raw, reply.raw, () => void reply.send(String(getLock('k').holdCount())));
    });
    expect((await ask('/')).text).toBe('2');
  });

  it('A guard on a hook that has a payload, such as `preParsing`, is an error that names the hook to use', async () => {
    await app.register(traceContext({ locks }));
    app.setErrorHandler(({ message }: Error) => message);
    app.post('/', { preParsing: lockOn('k') as never }, async () => 'in');
    expect((await ask('/', { method: 'POST' })).text).toBe(
      'Expected a middleware to be called with `(request, reply, done)`, got a value of type object as `next`: mount it as a `preHandler` hook',
    );
  });

  it('The error of a hook that Express calls names the import to use', () => {
    const [req, res] = [{ headers: {}, app: {} }, { setHeader() {} }];
    const next = jest.fn();
    Reflect.apply(lockOn('k'), undefined, [req, res, next]);
    const message =
      'Expected a middleware to be called with `(request, reply, done)`, got a call by Express: import it from `reenlock/express` instead';
    expect(next.mock.calls).toEqual([[expect.objectContaining({ code: 'ERR_LOCK_CONFIG', message })]]);
  });

  it('[fastify-proxy-01] A guarded proxy whose client disconnects before the upstream has responded keeps the lock for abortGraceMs', async () => {
    const upstream = fastify();
    const [asked, response] = [gate(), gate()];
    upstream.get('/', async () => {
      asked.open();
      await response;
      return 'late';
    });
    const kit = createTestLocks({ clock: 'manual' });
    app.register(traceContext({ locks: kit })).register(replyFrom);
    const gone = gate();
    app.addHook('onRequestAbort', (_, done) => {
      gone.open();
      done();
    });
    const base = await upstream.listen({ port: 0, host: '127.0.0.1' });
    app.get('/', { preHandler: lockOn('k') }, (_, reply) => reply.from(base));
    const client = new AbortController();
    const left = ask('/', { signal: client.signal }).catch((reason: Error) => reason.name);
    await asked;
    client.abort();
    expect(await left).toBe('AbortError');
    await gone;
    response.open();
    // Waits for the upstream's connection: the proxy has got the response by then.
    await upstream.close();
    expect((await kit.inspect('k')).holds).toHaveLength(1);
    const lost = new Promise((resolve) => kit.on('lost', ({ error }) => resolve(error.message)));
    await kit.clock.advance(30_000);
    expect(await lost).toContain('abortGraceMs');
    await kit.end();
  });

  describe('A handlerTimeout', () => {
    const limited = { handlerTimeout: 300, preHandler: lockOn('k') };

    it.each<[string, number | undefined]>([
      ['of a route', undefined],
      ['of the application', 300],
    ])(
      '[fastify-timeout-01] A handlerTimeout %s leaves the lock with the handler until it has settled',
      async (_, handlerTimeout) => {
        const work = gate();
        const done = gate();
        app = fastify(handlerTimeout === undefined ? {} : { handlerTimeout });
        await app.register(traceContext({ locks, trust: 'all' }));
        app.get('/', handlerTimeout === undefined ? limited : { preHandler: lockOn('k') }, async () => {
          await work;
          // Re-enters: the work is not over.
          await getLock('k').run((hold) => expect(pathOf(hold)).toBe('first'));
          done.open();
        });
        expect((await ask('/', { headers: { 'X-Trace-Id': 'first' } })).status).toBe(503);
        expect((await locks.inspect('k')).holds.map((each) => pathOf(each))).toEqual(['first']);
        work.open();
        await done;
        await until(async () => (await locks.inspect('k')).holds.length === 0);
      },
    );

    it('[fastify-timeout-02] A guarded route with a handlerTimeout that was declared before traceContext was registered is an error', async () => {
      app.register(traceContext({ locks }));
      app.get('/', limited, () => 'in');
      const { status, text } = await ask('/');
      expect([status, JSON.parse(text)]).toEqual([
        500,
        expect.objectContaining({ code: 'ERR_LOCK_CONFIG', message: expect.stringContaining('await app.register') }),
      ]);
    });
  });
});
