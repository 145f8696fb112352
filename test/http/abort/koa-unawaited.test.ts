import { getLock } from 'reenlock';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import type { Call, Framework, Middleware } from '../../support/http/frameworks.ts';
import { koa2, koa3 } from '../../support/http/koa-app.ts';
import { ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';
import { matrix } from '../../support/matrix.ts';

/** `first` is below the middleware and works; `second` waits for its key. */
function contest(framework: Framework, middleware: (stage: ServerStage) => Middleware, locks?: ServerStageOptions) {
  return Contest.through(framework, { locks: locks ?? {} }, (app, work, stage) =>
    app.route('/first', middleware(stage), framework.lockOn('k'), async () => {
      await work();
      stage.note(`first holds: ${getLock('k').isHeld()}`);
    }),
  );
}

describe.each(matrix([koa3], () => [koa2()]))(
  'Koa middleware above a guard that does not await it ($name)',
  (framework) => {
    afterEach(ServerStage.endAll);

    /** Gives up what is below when the gate opens, and answers in its place. */
    const timeLimit = (limit: Promise<void>) =>
      framework.middleware((call: Call, next) => Promise.race([next(), limit.then(() => call.send('too slow', 504))]));

    it('[koa-unawaited-01] If a time limit responds instead of the handler, the lock is kept until the handler has ended, for longer than abortGraceMs', async () => {
      const clock = new ManualClock();
      const limit = gate();
      const options = { clock, waitMs: Number.POSITIVE_INFINITY };
      const held = await contest(framework, () => timeLimit(limit), options);
      limit.open();
      await held.first.receives(/^HTTP\/1.1 504 /);
      await clock.advance(60_000);
      await held.expectHeldUntilGo();
      held.stage.expectOrder('first in', 'first holds: true', 'released first k', 'second in');
    });

    it('[koa-unawaited-02] If middleware forgets to await the guard and responds first, the lock is kept until the handler has ended', async () => {
      const forget = (stage: ServerStage): Middleware =>
        framework.middleware(async (call, next) => {
          void next();
          await stage.until('waiting second k');
          call.send('forgotten');
        });
      const held = await contest(framework, forget);
      await held.first.receives(/^HTTP\/1.1 200 /);
      await held.expectHeldUntilGo();
      held.stage.expectOrder('first in', 'first holds: true', 'released first k', 'second in');
    });

    it.each(Array.from({ length: 12 }, (_, turns) => turns))(
      'If middleware forgets to await the guard, and the guard gets its key %d turns of promises later, no handler runs without the lock',
      async (turns) => {
        const stage = await ServerStage.start(framework, (app, stage) => {
          const forgetful = framework.middleware((call, next) => {
            (next() as Promise<void>).catch((error) => stage.note(error.code)).finally(() => stage.note('over'));
            call.send('forgot');
          });
          const slowKey = async (): Promise<string> => {
            for (let i = 0; i < turns; i++) await undefined;
            return 'k';
          };
          app.route('/first', forgetful, framework.lockOn(slowKey), () => {
            if (!getLock('k').isHeld()) stage.note('unlocked');
          });
          app.route('/before', framework.lockOn('warm'), (call) => call.send('subscribed'));
        });
        await stage.get('/before', 'before');
        await stage.get('/first', 'first');
        await stage.until('over');
        expect(stage.journal).not.toContain('unlocked');
      },
    );

    it('[koa-unawaited-03] If middleware forgets to await a guard that has not begun, nothing is locked after the response', async () => {
      const stage = await ServerStage.start(framework, (app, stage) => {
        const forgetful = framework.middleware((_, next) => {
          (next() as Promise<void>).catch((error: { code: string }) => stage.note(error.code));
        });
        app.route('/first', forgetful, framework.lockOn('k'), () => stage.note('first in'));
      });
      expect((await stage.get('/first', 'first')).status).toBe(404);
      await stage.until('ERR_LOCK_SCOPE');
      await stage.free('k');
      expect(stage.journal).not.toContain('first in');
    });

    it('[koa-unawaited-04] If a time limit responds while the guard waits, the request leaves the queue, and its handler never runs', async () => {
      const limit = gate();
      const work = gate();
      const stage = await ServerStage.start(framework, (app, stage) => {
        app.route('/holder', framework.lockOn('k'), stage.handler('holder', work));
        const swallow = framework.middleware((_, next) => (next() as Promise<void>).catch(() => {}));
        app.route('/late', timeLimit(limit), swallow, framework.lockOn('k'), () => stage.note('late in'));
      });
      const holder = stage.get('/holder', 'holder');
      await stage.until('holder in');
      const late = stage.get('/late', 'late');
      await stage.until('waiting late k');
      limit.open();
      expect((await late).status).toBe(504);
      await stage.until('aborted late k');
      expect([await stage.holder('k'), await stage.waiters('k')]).toEqual(['holder', []]);
      work.open();
      await holder;
      expect(stage.journal).not.toContain('late in');
    });
  },
);
