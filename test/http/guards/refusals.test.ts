import { getLock, lock, runInTrace } from 'reenlock';
import { type App, describeFrameworks } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

describeFrameworks('a refusal', (framework) => {
  it.each<[string, (app: App) => App]>([
    [
      'deep in a service is responded to as that of a guard',
      (app) =>
        app.route('/x', async (call) => {
          try {
            await getLock('secret-key', { waitMs: 0 }).acquire();
          } catch (error) {
            call.fail(error);
          }
        }),
    ],
    [
      'of a guard keeps its Retry-After if JSON error middleware drops the error’s headers',
      (app) =>
        app
          .onError((error, call) => call.send({ code: error.code, message: error.message }, error.status ?? 500))
          .route('/x', framework.lockOn('secret-key', { waitMs: 0 }), () => {}),
    ],
  ])('A refusal %s', async (_, build) => {
    const stage = await ServerStage.start(framework, build);
    const refused = () => lock.run('secret-key', () => stage.get('/x', 'second'));
    const { status, headers, text } = await runInTrace(refused, { locks: stage.locks, traceId: 'secret-holder' });
    expect([status, headers['x-trace-id']]).toEqual([423, 'second']);
    expect(headers['retry-after']).toMatch(/^[1-9]\d*$/);
    expect(text).toContain('The lock was not free within');
    expect(text).not.toContain('secret');
  });
});
