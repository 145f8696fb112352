import { getLock, type LockError, lock } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { type App, type Call, describeFrameworks, type Framework } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

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
  afterEach(ServerStage.endAll);

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

  it('Error middleware may wait for a lock of another request while it still holds the guard’s', async () => {
    const contest = await Contest.through(framework, (app, work, stage) =>
      catching(framework, app, async (_, call) => {
        stage.note('handling');
        await lock.run('audit', () => stage.note('audited'));
        call.send('audited', 500);
      })
        .route('/audit', lockOn('audit'), async (call) => {
          stage.note('audit in');
          await stage.until('waiting first audit');
          await contest.expectStillHeld();
          call.send('audit');
        })
        .route('/first', lockOn('k'), async (call) => {
          await work();
          call.fail(trouble());
        }),
    );
    const audit = contest.stage.get('/audit', 'third');
    await contest.stage.until('audit in');
    contest.go();
    expect((await audit).status).toBe(200);
    await contest.expectReleasedOnce();
    await contest.expectAnswer(/^HTTP\/1.1 500 [\s\S]*audited$/);
    contest.stage.expectOrder('handling', 'released third audit', 'audited', 'released first k', 'second in');
  });

  it('Error middleware that calls res.destroy() releases the lock', async () => {
    const answer = gate();
    const contest = await Contest.through(framework, (app, work, stage) =>
      catching(framework, app, async (_, call) => {
        stage.note('handling');
        await answer;
        call.res.destroy();
      }).route('/first', lockOn('k'), async (call) => {
        await work();
        call.fail(trouble());
      }),
    );
    contest.go();
    await contest.stage.until('handling');
    await contest.expectStillHeld();
    answer.open();
    await contest.expectReleasedOnce();
    await contest.first.closed;
    expect(contest.first.received).toBe('');
  });

  it('The framework’s own response to a failure or an unknown route releases the lock', async () => {
    for (const [path, status] of [
      ['/first/fails', 500],
      ['/first/nowhere', 404],
    ] as const) {
      const contest = await Contest.through(framework, { path }, (app, work) =>
        app.mount('/first', (sub) =>
          sub
            .use(
              lockOn('k'),
              framework.middleware(async (_, next) => {
                await work();
                return next();
              }),
            )
            .route('/fails', (call) => call.fail(trouble())),
        ),
      );
      await contest.expectHeldUntilGo();
      await contest.expectAnswer(new RegExp(`^HTTP/1.1 ${status} `));
    }
  });

  it('Error middleware may respond to a refusal while the holder and the other waiters stay', async () => {
    const contest = await Contest.through(framework, (app, work) =>
      catching(framework, app, async (error, call) => call.send(error.code, error.status)).route(
        '/first',
        lockOn('k', { waitMs: 1 }),
        async (call) => {
          await work();
          call.send('first');
        },
      ),
    );
    const { status, text } = await contest.stage.get('/first', 'third');
    expect([status, text]).toEqual([423, 'ERR_LOCK_TIMEOUT']);
    await contest.expectHeld();
    contest.go();
    await contest.expectReleasedOnce();
    await contest.expectAnswer(/first$/);
  });
});
