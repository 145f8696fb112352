import { Hono, type MiddlewareHandler } from 'hono';
import { streamSSE } from 'hono/streaming';
import { timeout } from 'hono/timeout';
import { currentTrace, lock, runInTrace, traceHeaders } from 'reenlock';
import { lockBoard, lockOn, sendProblem, traceContext } from 'reenlock/hono';
import { createTestLocks, type TestLocks } from 'reenlock/testing';
import { type Gate, gate } from '../support/gate.ts';
import { until } from '../support/until.ts';
import { recordWarnings } from '../support/warnings.ts';

const post = { method: 'POST' };
let locks: TestLocks;
let app: Hono;
let inside: Gate;
let work: Gate;
const warnings = recordWarnings();

const isHeld = async (): Promise<boolean> => (await locks.inspect('k')).holds.length > 0;
const isFree = async (): Promise<boolean> => !(await isHeld());

/** What happens in a server that calls `app.fetch` alone, as those of Bun and Deno. test/package/runtimes.test.ts asks these. */
describe('Hono without a response of `node:http`', () => {
  beforeEach(() => {
    locks = createTestLocks();
    app = new Hono();
    app.use(traceContext({ locks }));
    [inside, work] = [gate(), gate()];
  });
  // Rejects if a lock is left.
  afterEach(() => locks.end());

  it('A guard excludes other requests, nested calls re-enter it, and the response names the trace', async () => {
    const order: string[] = [];
    app.post('/', lockOn('k'), async (c) => {
      order.push('in');
      const fence = await lock.run('k', async (hold) => {
        await new Promise(setImmediate);
        return hold.fence;
      });
      order.push('out');
      return c.json({ isSame: fence === c.var.lock?.fence, all: [...(c.var.locks?.keys() ?? [])] });
    });
    const responses = await Promise.all([app.request('/', post), app.request('/', post)]);
    expect(order).toEqual(['in', 'out', 'in', 'out']);
    for (const response of responses) expect(await response.json()).toEqual({ isSame: true, all: ['k'] });
    const [one, two] = responses.map(({ headers }) => headers.get('X-Trace-Id'));
    expect([one, two]).toEqual([expect.any(String), expect.any(String)]);
    expect(one).not.toBe(two);
  });

  it.each<[what: string, init: RequestInit, respond: () => Response]>([
    ['a body that nobody reads', {}, () => new Response('unread')],
    ['no body', {}, () => new Response(null, { status: 204 })],
    ['the headers of a HEAD request', { method: 'HEAD' }, () => new Response(new ReadableStream())],
    ['a redirect, whose headers are fixed', {}, () => Response.redirect('http://elsewhere/', 302)],
    ['an error that is no `Error`', {}, () => Promise.reject('no error') as never],
  ])('The lock is released after a response with %s', async (_, init, respond) => {
    app.get('/', lockOn('k'), () => respond());
    await Promise.resolve(app.request('/', init)).catch(() => undefined);
    await until(isFree);
  });

  it.each<[what: string, make: () => Promise<Response>]>([
    [
      'whose body was read',
      async () => {
        const response = new Response('read');
        const reader = response.body?.getReader();
        await reader?.read();
        reader?.releaseLock();
        return response;
      },
    ],
    [
      'whose body is being sent',
      async () => {
        const response = new Response('sent');
        response.body?.getReader();
        return response;
      },
    ],
    ['that has no constructor', async () => Response.error()],
  ])('A response %s stays as it is, and its lock is released', async (_, make) => {
    const made = await make();
    app.get('/', lockOn('k'), () => made);
    expect(await app.request('/')).toBe(made);
    await until(isFree);
  });

  it('The headers of a redirect get the trace id, and the application’s own headers stay', async () => {
    app.get('/', lockOn('k'), () => Response.redirect('http://elsewhere/', 303));
    app.get('/own', lockOn('k'), (c) => c.text('own', 200, { 'X-Trace-Id': 'own' }));
    const response = await app.request('/');
    expect([response.status, response.headers.get('Location')]).toEqual([303, 'http://elsewhere/']);
    expect(response.headers.get('X-Trace-Id')).toMatch(/./);
    expect(response.headers.get('Content-Type')).toBeNull();
    expect((await app.request('/own')).headers.get('X-Trace-Id')).toBe('own');
  });

  it('A stream holds the lock until its last chunk, and re-enters it in `pull`', async () => {
    const chunks = ['first', 'second', 'third', 'fourth'];
    app.get('/', lockOn('k'), (c) => {
      const pull = async (controller: ReadableStreamDefaultController): Promise<void> => {
        const chunk = chunks.shift();
        if (chunk === undefined) return controller.close();
        await lock.run('k', async () => controller.enqueue(new TextEncoder().encode(chunk)));
      };
      return c.body(new ReadableStream({ pull }, { highWaterMark: 0 }));
    });
    const response = await app.request('/');
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    expect(await isHeld()).toBe(true);
    while (!(await reader.read()).done);
    await until(isFree);
    expect(chunks).toEqual([]);
  });

  it('With releaseOn `close` the lock is released when the body was read, when its client cancels it, or at once without one', async () => {
    const guard = lockOn('k', { releaseOn: 'close' });
    app.get('/text', guard, (c) => c.body(new ReadableStream({ pull: (controller) => controller.close() })));
    app.get('/endless', guard, (c) =>
      c.body(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1)) })),
    );
    app.get('/empty', guard, (c) => c.body(null));
    await (await app.request('/text')).text();
    await until(isFree);
    await (await app.request('/endless')).body?.cancel();
    await until(isFree);
    await app.request('/empty');
    await until(isFree);
  });

  it('A stream that fails, or that its client cancels, releases the lock', async () => {
    app.get('/fails', lockOn('k'), (c) =>
      c.body(new ReadableStream({ pull: () => Promise.reject(new Error('broken')) })),
    );
    app.get('/endless', lockOn('k'), (c) =>
      c.body(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1)) })),
    );
    await expect((await app.request('/fails')).text()).rejects.toThrow('broken');
    await until(isFree);
    const response = await app.request('/endless');
    expect(await isHeld()).toBe(true);
    await response.body?.cancel();
    await until(isFree);
  });

  it('A client that disconnects ends its wait in the queue, and the handler does not run', async () => {
    let hasRun = false;
    app.get('/', lockOn('k'), (c) => {
      hasRun = true;
      return c.text('in');
    });
    const other = await locks.holdAs('another', 'k');
    const client = new AbortController();
    const response = app.request('/', { signal: client.signal });
    await locks.whenWaiting('k');
    client.abort();
    expect((await response).status).toBe(499);
    await other.release();
    expect(hasRun).toBe(false);
  });

  it.each<[when: string, prepare: (client: AbortController) => unknown]>([
    ['before its request arrives', (client) => client.abort()],
    ['in the turn of its grant', (client) => locks.on('granted', () => client.abort())],
  ])('A client that disconnects %s gets no lock, and the handler does not run', async (_, prepare) => {
    let hasRun = false;
    app.get('/', lockOn('k'), (c) => {
      hasRun = true;
      return c.text('in');
    });
    const client = new AbortController();
    prepare(client);
    expect((await app.request('/', { signal: client.signal })).status).toBe(499);
    expect(hasRun).toBe(false);
    await until(isFree);
  });

  it('A handler whose client disconnects keeps its lock until it has settled, and sees its signal', async () => {
    const seen: unknown[] = [];
    app.get('/', lockOn('k'), async (c) => {
      inside.open();
      await work;
      seen.push(currentTrace()?.signal.aborted, c.var.lock?.isHeld());
      return c.text('late');
    });
    const client = new AbortController();
    const response = app.request('/', { signal: client.signal });
    await inside;
    client.abort();
    expect(await isHeld()).toBe(true);
    work.open();
    await response;
    expect(seen).toEqual([true, true]);
    await until(isFree);
  });

  it('A handler whose client has disconnected loses the lock after `abortGraceMs`', async () => {
    const manual = createTestLocks({ clock: 'manual', abortGraceMs: 1_000 });
    const own = new Hono().use(traceContext({ locks: manual }));
    const lost = gate();
    own.get('/', lockOn('k'), async (c) => {
      inside.open();
      c.var.lock?.signal.addEventListener('abort', () => lost.open());
      await work;
      return c.text('late');
    });
    const client = new AbortController();
    const response = own.request('/', { signal: client.signal });
    await inside;
    client.abort();
    await manual.clock.advance(1_001);
    await lost;
    work.open();
    await response;
    await manual.end();
  });

  it('A busy lock is a 423 with Retry-After, by the default handler, by `onError` and by a guard’s handler', async () => {
    await locks.holdAs('another', 'k');
    app.get('/default', lockOn('k', { waitMs: 0 }), (c) => c.text('in'));
    app.get('/handler', lockOn('k', { waitMs: 0, handler: (_, c) => c.text('busy', 409) }), (c) => c.text('in'));
    const busy = await app.request('/default');
    expect([busy.status, busy.headers.get('Content-Type')]).toEqual([423, 'application/problem+json']);
    const handled = await app.request('/handler');
    expect([handled.status, await handled.text()]).toEqual([409, 'busy']);
    app.onError(sendProblem);
    const problem = await app.request('/default');
    expect(await problem.json()).toMatchObject({ code: 'ERR_LOCK_TIMEOUT' });
    for (const { headers } of [busy, handled, problem]) expect(Number(headers.get('Retry-After'))).toBeGreaterThan(0);
  });

  it.each(['above', 'below'])(
    'A request that a timeout %s `traceContext` refuses during its wait never runs',
    async (where) => {
      const own = new Hono();
      const middleware = [timeout(50), traceContext({ locks })];
      own.use(...(where === 'above' ? middleware : middleware.reverse()));
      let hasRun = false;
      own.get('/', lockOn('k'), (c) => {
        hasRun = true;
        return c.text('in');
      });
      const other = await locks.holdAs('another', 'k');
      expect((await own.request('/')).status).toBe(504);
      const granted = new Promise((resolve) => locks.on('granted', resolve));
      await other.release();
      await granted;
      await until(isFree);
      expect(hasRun).toBe(false);
    },
  );

  it('An event stream under a guard is warned of', async () => {
    app.get('/', lockOn('k'), (c) => streamSSE(c, (events) => events.writeSSE({ data: 'one' })));
    await (await app.request('/')).text();
    expect(warnings()).toEqual([expect.objectContaining({ code: 'LOCK_EVENT_STREAM' })]);
  });

  it.each([
    ['all', true],
    ['internal', false],
    ['none', false],
  ] as const)('With trust %s the request has the trace id that was sent: %s', async (trust, isAdopted) => {
    const own = new Hono().use(traceContext({ locks, trust }));
    own.get('/', (c) => c.text(currentTrace()?.traceId ?? ''));
    const headers = await runInTrace(() => traceHeaders(), { locks, traceId: 'mine' });
    expect((await (await own.request('/', { headers })).text()) === 'mine').toBe(isAdopted);
  });

  it('A `traceContext` below another changes nothing: a stream that middleware between them sends holds the lock', async () => {
    const replace: MiddlewareHandler = async (c, next) => {
      await next();
      c.res = new Response(new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(1)) }));
    };
    app.get('/', lockOn('k'), replace, traceContext({ locks }), (c) => c.body(null));
    const response = await app.request('/');
    expect(await isHeld()).toBe(true);
    await response.body?.cancel();
    await until(isFree);
  });

  it('A guard without `traceContext` is an error, and so is the board', async () => {
    const own = new Hono();
    own.get('/guard', lockOn('k'), (c) => c.text('in'));
    own.get('/board', lockBoard({ authorize: () => ({ name: 'ann' }), locks }));
    const errors: Error[] = [];
    own.onError((error, c) => {
      errors.push(error);
      return c.text('failed', 500);
    });
    for (const path of ['/guard', '/board']) expect((await own.request(path)).status).toBe(500);
    expect(errors.map(({ message }) => message)).toEqual([
      expect.stringContaining('Expected `traceContext()` to run before each guard'),
      'Expected a middleware to be called with `(c, next)` and a response of `node:http`, got `undefined` (undefined) as `c.env.outgoing`: serve the board with @hono/node-server, or by `npx reenlock board`; for a WebSocket, lock in `runInTrace`',
    ]);
  });
});
