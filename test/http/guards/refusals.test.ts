import { type createLocks, getLock, type LockStore, MemoryStore } from 'reenlock';
import type { Response } from 'supertest';
import { defaultInstance } from '../../../src/core/model/process-name.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { type App, describeFrameworks, type Framework, type GuardOptions } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

const secretKey = 'account:4711-secret';
const owner = 'owner-of-the-lock';
const connection = 'redis://user:pa55word@10.0.0.7:6379';

describeFrameworks('a refusal', (framework) => {
  const { lockOn } = framework;
  afterEach(ServerStage.endAll);

  it('A refusal gets 423 with Retry-After and the trace id from the default error handler', async () => {
    const { status, headers, text } = await refused(framework, {});
    expect(status).toBe(423);
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(headers['x-trace-id']).toBe('second');
    expect(text).toContain('The lock was not free within');
    expectNothingTold(text);
  });

  it('A refusal’s Retry-After is the rest of the holder’s lease, in whole seconds', async () => {
    const { headers } = await refused(framework, {}, { guardOfHolder: { leaseMs: 90_000 } });
    const seconds = Number(headers['retry-after']);
    expect(seconds).toBeLessThanOrEqual(90);
    expect(seconds).toBeGreaterThan(60);
  });

  it('A refusal without a wait has its Retry-After, too', async () => {
    const { status, headers } = await refused(framework, { waitMs: 0 });
    expect([status, headers['retry-after']]).toEqual([423, '10']);
  });

  it('A refusal keeps its Retry-After if JSON error middleware drops the error’s headers', async () => {
    const { status, headers, body } = await refused(
      framework,
      {},
      {
        extend: (app) =>
          app.onError((error, call) => call.send({ code: error.code, message: error.message }, error.status ?? 500)),
      },
    );
    expect({ status, code: body.code }).toEqual({ status: 423, code: 'ERR_LOCK_TIMEOUT' });
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(headers['x-trace-id']).toBe('second');
    expectNothingTold(JSON.stringify(body));
  });

  it('A refusal never has its key in the JSON of the error', async () => {
    const { body } = await refused(
      framework,
      {},
      { extend: (app) => app.onError((error, call) => call.send(JSON.stringify(error), 423)) },
    );
    expectNothingTold(JSON.stringify(body));
  });

  it('The response to a refusal has the status of its guard', async () => {
    const { status, headers } = await refused(framework, { statusCode: 409 });
    expect(status).toBe(409);
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
  });

  it('The guard’s own handler responds to a refusal, and gets the error', async () => {
    const { status, headers, body } = await refused(framework, {
      handler: (error, call) => call.send({ own: error.code, key: error.key }, 503),
    });
    expect({ status, body }).toEqual({ status: 503, body: { own: 'ERR_LOCK_TIMEOUT', key: secretKey } });
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
  });

  it('If the guard’s own handler throws, its error goes to the error handler', async () => {
    const { status, text } = await refused(framework, {
      handler: async () => {
        throw Object.assign(new Error('own trouble'), { status: 502, expose: true });
      },
    });
    expect(status).toBe(502);
    expect(text).toContain('own trouble');
  });

  it('A refusal is a problem document with sendProblem', async () => {
    const { status, headers, text } = await refused(framework, { handler: 'problem' });
    expect(status).toBe(423);
    expect(headers['content-type']).toContain('application/problem+json');
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(JSON.parse(text)).toEqual({
      type: 'about:blank',
      title: 'Locked',
      status: 423,
      detail: expect.stringContaining('The lock was not free within'),
      code: 'ERR_LOCK_TIMEOUT',
    });
    expectNothingTold(text);
  });

  it('A request gets a 503 with Retry-After at once if the queue is full', async () => {
    const { go, stage } = await holding(framework, {}, { locks: { maxWaitersPerKey: 1 } });
    const waiter = stage.get('/second', 'waiter');
    await stage.until(`waiting waiter ${secretKey}`);
    const { status, headers, text } = await stage.get('/second', 'too-many');
    expect([status, headers['x-trace-id']]).toEqual([503, 'too-many']);
    // More than the holder’s lease: somebody waits before.
    expect(Number(headers['retry-after'])).toBeGreaterThan(10);
    expectNothingTold(text);
    go.open();
    expect((await waiter).status).toBe(200);
  });

  it.each([true, false])(
    'A failed store gives a 503 that shows nothing of it (in production: %s)',
    async (isProduction) => {
      const stage = await ServerStage.start(framework, { store: failingStore() }, (app, stage) =>
        (isProduction ? app.inProduction() : app).route('/x', lockOn(secretKey), () => stage.note('in')),
      );
      const log = jest.spyOn(console, 'error').mockImplementation(() => stage.note('logged'));
      const { status, headers, text } = await stage.get('/x', owner);
      expect([status, headers['retry-after'], headers['x-trace-id']]).toEqual([503, '1', owner]);
      expect(stage.journal).not.toContain('in');
      expectNothingTold(text);
      // Express logs in a later turn than it answers.
      if (isProduction && framework.adapter === 'express') await stage.until('logged');
      log.mockRestore();
      // Fastify's default error handler sends every message.
      if (isProduction && framework.adapter !== 'fastify') expect(text).not.toContain('store');
    },
  );

  it('A failed store shows no message with sendProblem either', async () => {
    const stage = await ServerStage.start(framework, { store: failingStore() }, (app) =>
      app.route('/x', lockOn(secretKey, { handler: 'problem' }), () => {}),
    );
    const { status, text } = await stage.get('/x', owner);
    expect(status).toBe(503);
    expect(JSON.parse(text)).toEqual({
      type: 'about:blank',
      title: 'Service Unavailable',
      status: 503,
      detail: expect.not.stringMatching(/store|connect/i),
      code: 'ERR_LOCK_STORE',
    });
  });

  it('A refusal is a 503 while the server shuts down', async () => {
    const { stage, go, first } = await holding(framework, {});
    const closing = stage.locks.close();
    const { status, headers, text } = await stage.get('/second', 'second');
    expect([status, headers['retry-after']]).toEqual([503, '1']);
    expectNothingTold(text);
    go.open();
    expect((await first).status).toBe(200);
    await closing;
  });

  it('The response to a refusal deep in a service is that of a guard', async () => {
    const { stage, go } = await holding(
      framework,
      {},
      {
        extend: (app) =>
          app.route('/deep', async (call) => {
            try {
              await getLock(secretKey, { waitMs: 20 }).acquire();
            } catch (error) {
              call.fail(error);
            }
          }),
      },
    );
    const { status, headers, text } = await stage.get('/deep', 'second');
    expect(status).toBe(423);
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expectNothingTold(text);
    go.open();
  });
});

/** A request `first` that holds the key until `go`, and an application that `second` may ask. */
async function holding(
  framework: Framework,
  guard: GuardOptions,
  { guardOfHolder, locks, extend = () => {} }: Setting = {},
): Promise<{ stage: ServerStage; go: Gate; first: Promise<Response> }> {
  const go = gate();
  const stage = await ServerStage.start(framework, locks, (app, stage) => {
    extend(app);
    app.route(
      '/first',
      framework.lockOn(() => secretKey, guardOfHolder),
      async (call) => {
        stage.note('first in');
        await go;
        call.send('first');
      },
    );
    app.route(
      '/second',
      framework.lockOn(() => secretKey, guard),
      (call) => call.send('second'),
    );
  });
  const first = stage.get('/first', owner);
  await stage.until('first in');
  return { stage, go, first };
}

interface Setting {
  readonly guardOfHolder?: GuardOptions;
  readonly locks?: Parameters<typeof createLocks>[0];
  readonly extend?: (app: App) => unknown;
}

/** The answer to a request that waits 20 ms for a key that another one holds. */
async function refused(framework: Framework, guard: GuardOptions, setting?: Setting): Promise<Response> {
  const { stage, go, first } = await holding(framework, { waitMs: 20, ...guard }, setting);
  const answer = await stage.get('/second', 'second');
  expect(await stage.waiters(secretKey)).toEqual([]);
  expect(await stage.holder(secretKey)).toBe(owner);
  go.open();
  expect((await first).status).toBe(200);
  await stage.free(secretKey);
  return answer;
}

function expectNothingTold(text: string): void {
  for (const secret of [secretKey, owner, defaultInstance(), connection, '4711', 'pa55word', '10.0.0.7'])
    expect(text).not.toContain(secret);
}

function failingStore(): LockStore {
  const store = new MemoryStore();
  store.acquire = () => Promise.reject(new Error(`connect ECONNREFUSED ${connection}`));
  return store;
}
