import { getLock, type LockError, lock } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { type App, type Call, describeFrameworks, type Framework } from '../../support/http/frameworks.ts';

type Handle = (error: Partial<LockError>, call: Call) => Promise<void>;

/** Error middleware below `traceContext`. */
function catching(framework: Framework, app: App, handle: Handle): App {
  // In Hono, what `next` returns does not reject.
  if (framework.style === 'callback' || framework.adapter === 'hono') return app.onError(handle);
  return app.use(
    framework.middleware(async (call, next) => {
      try {
        await next();
      } catch (error) {
        await handle(error as Partial<LockError>, call);
      }
    }),
  );
}

const trouble = (): Error => new Error('trouble');

describeFrameworks('Error middleware after a guarded handler has failed', (framework) => {
  const { lockOn } = framework;

  it('Error middleware may acquire a lock and re-enter the guard’s: both are held until it responds', async () => {
    const answer = gate();
    const contest = await Contest.through(framework, (app, work, stage) =>
      catching(framework, app, async (_, call) => {
        const audit = await lock.acquire('audit');
        stage.note(`handling with ${await getLock('k').run(() => getLock('k').holdCount())}`);
        await answer;
        call.send(`audit ${audit.isHeld()}`, 500);
      }).route('/first', lockOn('k'), async (call) => {
        await work();
        call.fail(trouble());
      }),
    );
    await contest.expectStillHeld();
    contest.go();
    await contest.stage.until('handling with 2');
    await contest.expectStillHeld();
    expect(await contest.stage.holder('audit')).toBe('first');
    answer.open();
    await contest.expectReleasedOnce();
    await contest.expectAnswer(/^HTTP\/1.1 500 [\s\S]*audit true$/);
    await contest.stage.free('audit');
    contest.stage.expectOrder('handling with 2', 'released first audit', 'released first k', 'second in');
  });
});
