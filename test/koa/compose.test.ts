import type { Context, Middleware, Next } from 'koa';
import mount from 'koa-mount';
import { getLock, isLockError, lock } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/koa';
import { gate } from '../support/gate.ts';
import { Contest, type Work } from '../support/http/contest.ts';
import { describeKoa } from '../support/http/native.ts';
import { ServerStage } from '../support/http/server-stage.ts';

describeKoa('A guard below other Koa middleware', (framework, Koa, compose) => {
  const answer =
    (work: Work): Middleware =>
    async (ctx) => {
      await work();
      ctx.body = `count ${getLock('k').holdCount()}`;
    };

  it.each(['above the guard', 'below the guard'])(
    'An error that is caught and answered %s keeps the lock until that response',
    async (place) => {
      const caught = gate();
      const contest = await Contest.through(framework, (app, work, stage) => {
        const catching = async (ctx: Context, next: Next): Promise<void> => {
          try {
            await next();
          } catch {
            stage.note('caught');
            await caught;
            ctx.status = 409;
            ctx.body = 'answered instead';
          }
        };
        const failing: Middleware = async () => {
          await work();
          throw new Error('trouble');
        };
        const steps = place === 'above the guard' ? [catching, lockOn('k')] : [lockOn('k'), catching];
        app.use(mount('/first', compose([...(steps as Middleware[]), failing])));
      });
      contest.go();
      await contest.stage.until('caught');
      await contest.expectStillHeld();
      caught.open();
      await contest.expectReleasedOnce();
      await contest.expectAnswer(/^HTTP\/1.1 409 [\s\S]*answered instead$/);
    },
  );

  it('A copy of `ctx.state` for a view, a log or a response has no holds in it', async () => {
    const show: Middleware = (ctx) => {
      ctx.state.user = 'ada';
      const { lock, locks } = ctx.state;
      ctx.body = {
        seen: [lock?.key, locks?.size],
        copy: { ...ctx.state },
        sent: JSON.parse(JSON.stringify(ctx.state)),
      };
    };
    const stage = await ServerStage.start(framework, (app) =>
      app.use(compose([lockOn('k'), lockOn('k'), show] as Middleware[])),
    );
    const { body } = await stage.get('/');
    expect(body).toEqual({ seen: ['k', 1], copy: { user: 'ada' }, sent: { user: 'ada' } });
  });

  it('An error that is caught above the guard, and answered past Koa, keeps the lock until that response', async () => {
    const later = gate();
    const contest = await Contest.through(framework, (app, work, stage) => {
      const catching = async (ctx: Context, next: Next): Promise<void> => {
        try {
          await next();
        } catch {
          ctx.respond = false;
          void later.then(() => ctx.res.end('answered instead'));
          setImmediate(() => stage.note('caught'));
        }
      };
      const failing: Middleware = async () => {
        await work();
        throw new Error('trouble');
      };
      app.use(mount('/first', compose([catching as Middleware, lockOn('k'), failing])));
    });
    contest.go();
    await contest.stage.until('caught');
    await contest.expectStillHeld();
    later.open();
    await contest.expectReleasedOnce();
    await contest.expectAnswer(/answered instead$/);
  });

  it('An error that is caught above traceContext has ended the scope: the lock is released, and no more is acquired', async () => {
    const caught = gate();
    const contest = await Contest.through(framework, { locks: { bare: true } }, (app, work, { locks }) => {
      const catching = framework.middleware(async (call, next) => {
        try {
          await next();
        } catch {
          const error: unknown = await lock.acquire('audit').catch((error: unknown) => error);
          await caught;
          call.send(isLockError(error) ? error.code : 'acquired', 500);
        }
      });
      app.use(catching, traceContext({ locks })).route('/first', framework.lockOn('k'), async () => {
        await work();
        throw new Error('trouble');
      });
    });
    await contest.expectHeldUntilGo();
    expect(contest.first.received).toBe('');
    caught.open();
    await contest.expectAnswer(/^HTTP\/1.1 500 [\s\S]*ERR_LOCK_SCOPE$/);
  });

  it('Composed middleware within composed middleware: its guards re-enter, and what comes after it is still covered', async () => {
    const after = gate();
    const contest = await Contest.through(framework, (app, work, stage) => {
      const within = compose([lockOn('k'), compose([compose([]), lockOn('k'), answer(work)])]);
      const outside: Middleware = async (_, next) => {
        await next();
        stage.note('after');
        await after;
      };
      app.use(mount('/first', compose([outside, within])));
    });
    await contest.expectStillHeld();
    contest.go();
    await contest.stage.until('after');
    // Its answer is sent when all middleware has settled.
    await contest.expectStillHeld();
    after.open();
    await contest.expectReleasedOnce();
    await contest.expectAnswer(/count 2$/);
  });

  it.each([
    ['below traceContext', { outer: true, inner: false, guard: false }, 1],
    ['with a traceContext of its own', { outer: false, inner: true, guard: false }, 1],
    ['below traceContext and with its own', { outer: true, inner: true, guard: false }, 1],
    ['below a guard', { outer: true, inner: false, guard: true }, 2],
    ['below a guard and with a traceContext of its own', { outer: true, inner: true, guard: true }, 2],
  ])('A mounted application %s holds until the answer, once', async (_, { outer, inner, guard }, count) => {
    const contest = await Contest.through(framework, { locks: { bare: true } }, (app, work, { locks }) => {
      const sub = new Koa();
      if (inner) sub.use(traceContext({ locks }));
      sub.use(lockOn('k')).use(answer(work));
      if (outer) app.use(traceContext({ locks }));
      if (guard) app.use(mount('/first', lockOn('k')));
      app.use(mount('/first', sub));
    });
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(new RegExp(`count ${count}$`));
  });

  it('A mounted application that passes on holds until what comes then has responded', async () => {
    const contest = await Contest.through(framework, { locks: { bare: true } }, (app, work, { locks }) => {
      const sub = new Koa().use(traceContext({ locks })).use(lockOn('k'));
      app.use(mount('/first', sub), mount('/first', answer(work)));
    });
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/count 1$/);
  });

  it('An application that is tried first and passes on by an error, caught between them, does not end the scope', async () => {
    const contest = await Contest.through(framework, (app, work, { locks }) => {
      const first = new Koa()
        .use(traceContext({ locks }))
        .use(lockOn('k'))
        .use(() => {
          throw new Error('not here');
        });
      const tryFirst: Middleware = (ctx, next) => mount('/first', first)(ctx, next).catch(() => next());
      app.use(tryFirst).use(mount('/first', compose([traceContext({ locks }), lockOn('k'), answer(work)])));
    });
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/count 2$/);
  });

  it('Without a traceContext above both, it does end the scope: what is tried next is refused, and locks nothing', async () => {
    const stage = await ServerStage.start(framework, { bare: true }, (app, stage) => {
      const { locks } = stage;
      const failing: Middleware = () => {
        throw new Error('not here');
      };
      const first = compose([traceContext({ locks }), lockOn('k'), failing]);
      const next = compose([traceContext({ locks }), lockOn('k'), () => stage.note('handler in')]);
      app
        .onError((error, call) => call.send(error.code, error.status))
        .use((ctx: Context, noNext: Next) => first(ctx, noNext).catch(() => next(ctx, noNext)));
    });
    const { status, text } = await stage.get('/', 'first');
    expect([status, text]).toEqual([500, 'ERR_LOCK_SCOPE']);
    await stage.free('k');
    expect(stage.journal).not.toContain('handler in');
  });
});
