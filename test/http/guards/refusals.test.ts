import { getLock } from 'reenlock';
import type { Response } from 'supertest';
import { defaultInstance } from '../../../src/core/model/process-name.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { type App, describeFrameworks, type Framework, type GuardOptions } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

const secretKey = 'account:4711-secret';
const owner = 'owner-of-the-lock';

describeFrameworks('a refusal', (framework) => {
  it('A refusal gets 423 with Retry-After and the trace id from the default error handler', async () => {
    const { status, headers, text } = await refused(framework, {});
    expect(status).toBe(423);
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(headers['x-trace-id']).toBe('second');
    expect(text).toContain('The lock was not free within');
    expectNothingTold(text);
  });

  it('A refusal keeps its Retry-After if JSON error middleware drops the error’s headers', async () => {
    const { status, headers, body } = await refused(framework, {}, (app) =>
      app.onError((error, call) => call.send({ code: error.code, message: error.message }, error.status ?? 500)),
    );
    expect({ status, code: body.code }).toEqual({ status: 423, code: 'ERR_LOCK_TIMEOUT' });
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(headers['x-trace-id']).toBe('second');
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

  it('The response to a refusal deep in a service is that of a guard', async () => {
    const { stage, go } = await holding(framework, {}, (app) =>
      app.route('/deep', async (call) => {
        try {
          await getLock(secretKey, { waitMs: 20 }).acquire();
        } catch (error) {
          call.fail(error);
        }
      }),
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
  extend: (app: App) => unknown = () => {},
): Promise<{ stage: ServerStage; go: Gate; first: Promise<Response> }> {
  const go = gate();
  const stage = await ServerStage.start(framework, (app, stage) => {
    extend(app);
    app.route(
      '/first',
      framework.lockOn(() => secretKey),
      stage.handler('first', go),
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

/** The answer to a request that waits 20 ms for a key that another one holds. */
async function refused(framework: Framework, guard: GuardOptions, extend?: (app: App) => unknown): Promise<Response> {
  const { stage, go, first } = await holding(framework, { waitMs: 20, ...guard }, extend);
  const answer = await stage.get('/second', 'second');
  expect(await stage.waiters(secretKey)).toEqual([]);
  expect(await stage.holder(secretKey)).toBe(owner);
  go.open();
  expect((await first).status).toBe(200);
  await stage.free(secretKey);
  return answer;
}

function expectNothingTold(text: string): void {
  for (const secret of [secretKey, owner, defaultInstance(), '4711']) expect(text).not.toContain(secret);
}
