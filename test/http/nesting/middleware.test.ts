import { lock } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { called } from '../../support/http/services.ts';

describeStyles('Middleware that calls the next one within `run`', (framework) => {
  const { lockOn, middleware, traceContext } = framework;

  it.each(['guard', 'guard of several keys', '`traceContext`'])(
    'A %s that it calls, and the handler below, enter what it holds',
    async (kind) => {
      const stage = await ServerStage.start(framework, (app, { locks }) => {
        const handled = gate();
        const outer = middleware((_, next) =>
          lock.run('k', async () => {
            const [result] = await Promise.all([next(), handled]);
            return result;
          }),
        );
        const inner = {
          guard: lockOn('k', { waitMs: 0 }),
          'guard of several keys': lockOn(() => ['j', 'k'], { waitMs: 0 }),
          '`traceContext`': traceContext({ locks }),
        }[kind];
        app.route('/x', outer, inner as typeof outer, async (call) => {
          try {
            call.send({ hasEntered: await lock.run('k', async () => true, { waitMs: 0 }) });
          } finally {
            handled.open();
          }
        });
      });
      expect(await called(stage, '/x')).toEqual({ hasEntered: true });
      await stage.free('j', 'k');
    },
  );
});
