import { createLocks } from 'reenlock';
import { Contest } from '../../support/http/contest.ts';
import { describeFrameworks } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

describeFrameworks('traceContext that is mounted twice', (framework) => {
  const { lockOn, traceContext } = framework;
  afterEach(ServerStage.endAll);

  it('traceContext mounted twice with the same locks is one scope: guards below each re-enter, and all is released once', async () => {
    const contest = await Contest.through(framework, (app, work, { locks }) =>
      app
        .use(traceContext({ locks }), traceContext())
        .route('/first', lockOn('k'), traceContext({ locks }), lockOn('k'), async (call) => {
          await work();
          call.send(`first ${call.lock?.isHeld()}`);
        }),
    );
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/first true$/);
  });

  it('traceContext mounted twice with different locks is an error, and what the outer one holds is released', async () => {
    const others = createLocks();
    const contest = await Contest.through(framework, (app, work, stage) =>
      app
        .onError((error, call) => call.send(`refused ${error.code}`, error.status ?? 500))
        .route(
          '/first',
          lockOn('k'),
          framework.middleware(async (_, next) => {
            await work();
            return next();
          }),
          traceContext({ locks: others }),
          lockOn('k'),
          () => stage.note('inner handler'),
        ),
    );
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/^HTTP\/1.1 500 [\s\S]*refused ERR_LOCK_CONFIG$/);
    expect(contest.stage.journal).not.toContain('inner handler');
    await others.close();
  });
});
