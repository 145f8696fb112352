import { currentTrace, isLockError, lock } from 'reenlock';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { type Call, describeFrameworks } from '../../support/http/frameworks.ts';
import { describeExpress } from '../../support/http/native.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

describeFrameworks('A request that goes on after its answer', (framework) => {
  it('[after-answer-01] The lock is released after work that is given to waitUntil synchronously after the response', async () => {
    const work = gate();
    let trace: ReturnType<typeof currentTrace>;
    const contest = await Contest.start(framework, (call, stage) => {
      trace = currentTrace();
      call.send('first');
      call.lock?.waitUntil(work);
      stage.note('first answers');
    });
    contest.go();
    await contest.first.receives(/first$/);
    await contest.expectStillHeld();
    // The scope lives on with it, and nobody has left.
    expect([trace?.hasEnded, trace?.signal.aborted]).toEqual([false, false]);
    work.open();
    await contest.expectHandedOn();
  });

  it('[after-answer-02] The lock is released after work that is given to waitUntil, even if that work fails', async () => {
    const work = gate();
    const contest = await Contest.start(framework, (call) => {
      call.lock?.waitUntil(work.then(() => Promise.reject(new Error('trouble'))));
      call.send('first');
    });
    contest.stage.locks.on('warning', ({ code }) => contest.stage.note(code));
    contest.go();
    await contest.first.receives(/first$/);
    await contest.expectHeldUntil(work);
    contest.stage.expectOrder('LOCK_WAIT_UNTIL', 'second in');
  });

  it(`[after-answer-03] The lock is released ${framework.awaitsHandlers ? 'only after' : 'before'} work that goes on after the response`, async () => {
    const work = gate();
    const contest = await Contest.start(framework, async (call, stage) => {
      call.detach();
      call.res.end('first');
      await work;
      stage.note(`isOver ${currentTrace()?.hasEnded}`);
      const error: unknown = await lock.acquire('more').then(
        (hold) => hold.release(),
        (error: unknown) => error,
      );
      stage.note(isLockError(error) ? error.code : 'acquired more');
    });
    contest.go();
    await contest.first.receives(/first/);
    if (framework.awaitsHandlers) await contest.expectStillHeld();
    else await contest.expectHandedOn();
    work.open();
    await contest.expectHandedOn();
    await contest.stage.until(framework.awaitsHandlers ? 'acquired more' : 'ERR_LOCK_SCOPE');
    expect(contest.stage.journal).toContain(`isOver ${!framework.awaitsHandlers}`);
  });

  if (framework.awaitsHandlers) {
    it.each([
      ['a client with its response has not disconnected', ({ res }: Call) => res.end('first')],
      ['nor has one whose response the handler has destroyed', ({ res }: Call) => res.destroy()],
    ] as const)(
      '[after-answer-04] The lock is released only after work that goes on for longer than abortGraceMs: %s',
      async (_, end) => {
        const clock = new ManualClock();
        const work = gate();
        const contest = await Contest.start(
          framework,
          { locks: { clock, waitMs: Number.POSITIVE_INFINITY } },
          async (call, stage) => {
            call.detach();
            call.res.on('close', () => stage.note('first is closed'));
            end(call);
            await work;
            stage.note(`told to stop: ${currentTrace()?.signal.aborted}`);
          },
        );
        contest.go();
        await contest.stage.until('first is closed');
        await clock.advance(60_000);
        await contest.expectHeldUntil(work);
        contest.stage.expectOrder('told to stop: false', 'released first k', 'second in');
        expect(contest.stage.journal).not.toContain('lost first k');
      },
    );
  } else {
    it('[after-answer-05] The lock is released before the handler has ended if a time limit responds in its place', async () => {
      const work = gate();
      const contest = await Contest.start(framework, async (call, stage) => {
        setImmediate(() => call.res.end('first, but late'));
        await work;
        stage.note(await stage.holder('k').then((owner) => `ended while it was held by ${owner}`));
      });
      contest.go();
      await contest.first.receives(/late/);
      await contest.expectHandedOn();
      work.open();
      await contest.stage.until('ended while it was held by undefined');
    });

    it('[after-answer-06] The lock is released before the handler has ended if a time limit of the request’s own destroys its connection', async () => {
      const work = gate();
      const contest = await Contest.start(framework, async (call, stage) => {
        setImmediate(() => call.req.socket.destroy());
        await work;
        stage.note(await stage.holder('k').then((owner) => `ended while it was held by ${owner}`));
      });
      contest.go();
      await contest.expectHandedOn();
      work.open();
      await contest.stage.until('ended while it was held by undefined');
    });
  }
});

describeFrameworks('A request that was answered before traceContext saw it', (framework) => {
  // Nest's guard runs after the middleware that opens the scope, and so after its end.
  const hasLock = framework.awaitsHandlers && framework.adapter !== 'nest';

  it.each(['end', 'close'] as const)(
    `A request that was already answered ${hasLock ? 'has its lock until its handler has ended' : 'gets no lock, and its handler never runs'} (releaseOn %s)`,
    async (releaseOn) => {
      const stage = await ServerStage.start(framework, { bare: true }, (app, stage) => {
        const answers = framework.middleware(async (call, next) => {
          if (call.req.url === '/before') return next();
          call.detach();
          await new Promise((resolve) => call.res.once('close', resolve).end('early'));
          // In Nest, what comes next fails with the guard.
          await Promise.resolve(next()).catch(() => {});
          stage.note('next has returned');
        });
        app
          .use(answers, framework.traceContext({ locks: stage.locks }))
          .route('/x', framework.lockOn('k', { releaseOn }), async () => {
            stage.note(`first in, held by ${await stage.holder('k')}`);
          })
          .route('/before', framework.lockOn('warm'), (call) => call.send('subscribed'));
      });
      // From here on a free key is had in the turn of its guard.
      await stage.get('/before', 'before');
      // It stays connected: no close is left to come.
      const client = (await stage.connect()).request({ path: '/x', trace: 'first' });
      await client.receives(/early$/);
      await stage.until('next has returned');
      await stage.free('k');
      const seen = stage.journal.filter((line) => line.includes(' in, ') || line.startsWith('lost'));
      expect(seen).toEqual(hasLock ? ['first in, held by first'] : []);
    },
  );

  if (framework.style === 'callback') {
    it('A request to which earlier middleware responds, and passes on by mistake, is not queued, and its handler does not run', async () => {
      const contest = await Contest.through(framework, (app, work, stage) => {
        const limit = framework.middleware((call, next) => {
          if (call.req.headers['x-trace-id'] === 'third') call.send('slow down', 429);
          next();
        });
        app
          .route('/first', limit, framework.lockOn('k'), async (call) => {
            stage.note(`in: ${call.req.headers['x-trace-id']}`);
            await work();
            call.send('first');
          })
          .route('/free', limit, framework.lockOn('free'), () => stage.note('in: third'));
      });
      for (const path of ['/first', '/free']) expect((await contest.stage.get(path, 'third')).status).toBe(429);
      await contest.expectHeldUntilGo();
      await contest.expectAnswer(/first$/);
      expect(contest.stage.journal).not.toContain('in: third');
      await contest.stage.free('free');
    });
  }
});

describeExpress('A request that acquires right after its answer', (framework) => {
  it('An acquire right after the response is refused, since the request has ended', async () => {
    const told = gate();
    let outcomes: unknown[] = [];
    const stage = await ServerStage.start(framework, (app) =>
      app
        .route('/before', framework.lockOn('warm'), (call) => call.send('subscribed'))
        .route('/x', async (call) => {
          call.send('x');
          const acquires = [lock.run('ran', () => 'ran'), lock.acquire('acquired'), lock.tryAcquire('tried')];
          outcomes = await Promise.all(
            acquires.map((each) => Promise.resolve<unknown>(each).catch(({ code }) => code)),
          );
          told.open();
        }),
    );
    await stage.get('/before', 'before');
    await stage.get('/x');
    await told;
    expect(outcomes).toEqual(['ERR_LOCK_SCOPE', 'ERR_LOCK_SCOPE', 'ERR_LOCK_SCOPE']);
    await stage.free('ran', 'acquired', 'tried');
  });
});
