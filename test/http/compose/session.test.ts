import { AsyncLocalStorage } from 'node:async_hooks';
import type { Request, RequestHandler } from 'express';
import session, { type SessionData } from 'express-session';
import { lockOn, traceContext } from 'reenlock/express';
import { type Gate, gate } from '../../support/gate.ts';
import { Contest, type Work } from '../../support/http/contest.ts';
import type { App } from '../../support/http/frameworks.ts';
import { describeExpress } from '../../support/http/native.ts';
import type { ServerStage } from '../../support/http/server-stage.ts';

const outside = AsyncLocalStorage.snapshot();

/** Saves the first request's session when its gate is opened, and answers outside of the caller's async context. */
class SlowStore extends session.Store {
  readonly #saved: Gate;
  readonly #note: (line: string) => void;
  readonly #error: Error | undefined;

  constructor(saved: Gate, note: (line: string) => void, error?: Error) {
    super();
    this.#saved = saved;
    this.#note = note;
    this.#error = error;
  }

  override get(_id: string, callback: (error: unknown) => void): void {
    callback(null);
  }

  override set(_id: string, data: SessionData, callback: (error?: unknown) => void): void {
    const isFirst = (data as { isFirst?: boolean }).isFirst === true;
    if (isFirst) this.#note('session is being saved');
    const answer = (): void => {
      if (isFirst) this.#note('session saved');
      callback(isFirst ? this.#error : undefined);
    };
    outside(() => void (isFirst ? this.#saved : Promise.resolve()).then(answer));
  }

  override destroy(_id: string, callback: (error?: unknown) => void): void {
    callback();
  }
}

interface Placing {
  readonly saved: Gate;
  readonly error?: Error;
}

/** Answers while its session has yet to be saved. */
function placed(place: 'above' | 'below', { saved, error }: Placing) {
  return (app: App, work: Work, stage: ServerStage): void => {
    const store = new SlowStore(saved, (line) => stage.note(line), error);
    const sessions: RequestHandler = session({ secret: 'secret', store, resave: false, saveUninitialized: true });
    const trace = traceContext({ locks: stage.locks });
    app.use(...(place === 'above' ? [sessions, trace] : [trace, sessions]));
    app.route('/first', lockOn('k'), async (call) => {
      await work();
      Object.assign((call.req as Request).session, { isFirst: true });
      call.send('the answer');
      stage.note('first answers');
    });
    app.onError((error, call) => {
      stage.note(`error: ${String(error)}`);
      if (!call.res.headersSent) call.send('failed', 500);
    });
  };
}

describeExpress('A guard beside express-session', (framework) => {
  it('With sessions mounted above traceContext, a guard holds until the response, not until the session is saved', async () => {
    const saved = gate();
    const contest = await Contest.through(framework, { locks: { bare: true } }, placed('above', { saved }));
    await contest.expectHeldUntilGo();
    expect(contest.stage.journal).not.toContain('session saved');
    expect(contest.first.received).not.toContain('the answer');
    saved.open();
    await contest.expectAnswer(/the answer$/);
  });

  it('With sessions mounted below traceContext, a guard holds until the session is saved', async () => {
    const saved = gate();
    const contest = await Contest.through(framework, { locks: { bare: true } }, placed('below', { saved }));
    contest.go();
    await contest.stage.until('session is being saved');
    await contest.expectStillHeld();
    saved.open();
    await contest.expectReleasedOnce();
    await contest.expectAnswer(/the answer$/);
    contest.stage.expectOrder('first answers', 'session saved', 'released first k', 'second in');
  });

  it.each(['above', 'below'] as const)(
    'With sessions mounted %s traceContext, a guard releases once if the session can’t be saved',
    async (place) => {
      const saved = gate();
      saved.open();
      const error = new Error('disk full');
      const contest = await Contest.through(framework, { locks: { bare: true } }, placed(place, { saved, error }));
      contest.go();
      await contest.expectReleasedOnce();
      await contest.expectAnswer(/the answer$/);
      await contest.stage.until('error: Error: disk full');
    },
  );
});
