import { getLock, isLockError, lock } from 'reenlock';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { type Call, describeFrameworks } from '../../support/http/frameworks.ts';
import type { Protocol } from '../../support/http/protocols.ts';

const trouble = (): Error => Object.assign(new Error('trouble'), { status: 409 });

describeFrameworks('A guard releases its lock', (framework) => {
  it.each<Protocol>(['HTTP/1.1', 'HTTPS'])(
    '[release-01] The lock is released when the handler responds, not earlier (%s)',
    async (protocol) => {
      const work = gate();
      const contest = await Contest.start(framework, { locks: { protocol } }, async (call, stage) => {
        stage.note('first works');
        await work;
        stage.note('first answers');
        call.send('first');
      });
      await contest.expectHeld();
      contest.go();
      await contest.stage.until('first works');
      await contest.expectHeldUntil(work);
      await contest.first.receives(/200 OK[\s\S]*first$/);
      contest.stage.expectOrder('first answers', 'released first k', 'second in');
      await contest.stage.unheard();
    },
  );

  it('[release-02] The lock is released in the round of the event loop in which the handler ends the response, before the response closes', async () => {
    const contest = await Contest.start(framework, (call, stage) => {
      call.detach();
      call.res.once('close', () => stage.note('first closes'));
      call.res.end('first');
      stage.note('first has ended');
      setImmediate(() => stage.note('the next round begins'));
    });
    contest.go();
    await contest.expectHandedOn();
    await contest.stage.until('first closes');
    contest.stage.expectOrder('first has ended', 'released first k', 'second in', 'the next round begins');
    contest.stage.expectOrder('second in', 'first closes');
  });

  const failures: [string, number, (call: Call) => unknown][] = [
    [
      'throws synchronously',
      409,
      () => {
        throw trouble();
      },
    ],
    ['calls next(error), or throws asynchronously', 409, async (call) => call.fail(trouble())],
  ];
  if (framework.answersRejections) failures.push(['rejects', 409, () => Promise.reject(trouble())]);

  it.each(failures)('[release-03] The lock is released when the handler %s', async (_, status, handler) => {
    const contest = await Contest.start(framework, handler);
    await contest.expectHeld();
    contest.go();
    await contest.expectHandedOn();
    await contest.first.receives(new RegExp(`^HTTP/1.1 ${status} `));
  });

  it('[release-04] The lock is released when the handler fails after a part of its response was sent', async () => {
    const fail = gate();
    const contest = await Contest.start(framework, async (call) => {
      call.detach();
      call.res.write('half');
      await fail;
      call.fail(trouble());
    });
    contest.go();
    await contest.first.receives(/half/);
    await contest.expectHeldUntil(fail);
  });

  if (!framework.answersRejections) {
    it('[release-05] The lock is released abortGraceMs after the client has disconnected if the handler rejects and nothing responds', async () => {
      const clock = new ManualClock();
      const contest = await Contest.start(
        framework,
        { locks: { clock, waitMs: Number.POSITIVE_INFINITY } },
        (_, stage) => {
          stage.note('first rejects');
          return Promise.reject(trouble());
        },
      );
      contest.go();
      await contest.stage.until('first rejects');
      await clock.advance(60_000);
      await contest.expectStillHeld();
      await contest.first.hangUp();
      await contest.expectHeldForGrace(clock);
      contest.stage.expectOrder('first rejects', 'lost first k', 'second in');
    });
  }

  it('[release-06] The lock is released once if the handler responds twice', async () => {
    const contest = await Contest.start(framework, (call) => {
      call.detach();
      call.res.end('once');
      call.res.end();
    });
    contest.go();
    await contest.expectHandedOn();
    await contest.first.receives(/once/);
    expect(contest.stage.count('released first k')).toBe(1);
  });

  it.each(['end', 'destroy'] as const)(
    'The lock is released when the handler calls res.%s(), which works as before',
    async (method) => {
      let answered: unknown;
      let response: unknown;
      const contest = await Contest.start(framework, (call) => {
        call.detach();
        response = call.res;
        answered = call.res[method]();
      });
      contest.go();
      await contest.expectHandedOn();
      expect(answered).toBe(response);
    },
  );

  it('[release-07] The lock is released once if the handler responds twice in the framework’s way', async () => {
    const contest = await Contest.start(framework, (call) => {
      call.send('once');
      call.send('twice');
    });
    contest.go();
    await contest.expectHandedOn();
    expect(contest.stage.count('released first k')).toBe(1);
  });

  it('[release-08] The lock is released when the response ends in a later tick, long after the handler has returned', async () => {
    const later = gate();
    const contest = await Contest.start(framework, (call, stage) => {
      call.detach();
      void later.then(() => call.res.end('late'));
      stage.note('first returns');
    });
    contest.go();
    await contest.stage.until('first returns');
    await contest.expectHeldUntil(later);
    await contest.first.receives(/late/);
  });

  it('[release-09] A handler that does not respond loses the lock after maxHoldMs, with its signal and the event `lost`', async () => {
    const clock = new ManualClock();
    const end = gate();
    const contest = await Contest.start(
      framework,
      { locks: { clock, waitMs: Number.POSITIVE_INFINITY } },
      async (call, stage) => {
        const { lock } = call;
        lock?.signal.addEventListener('abort', () => {
          const { reason } = lock.signal;
          stage.note(`told ${isLockError(reason) && reason.code} ${lock.isHeld()}`);
        });
        await end;
        call.send('at last');
      },
    );
    contest.go();
    await clock.advance(290_000);
    await contest.expectStillHeld();
    await clock.advance(10_000);
    await contest.expectHandedOn();
    contest.stage.expectOrder('renewed first k', 'told ERR_LOCK_LOST false', 'lost first k', 'second in');
    end.open();
    await contest.first.receives(/at last/);
  });

  it.each([
    ['HEAD', 200, 'HEAD'],
    ['GET', 204, 'a 204'],
    ['GET', 304, 'a 304'],
  ])('[release-10] The lock is released when a %s is answered %i, without a body', async (method, status) => {
    const contest = await Contest.start(framework, { method }, (call) => call.send('no body', status));
    contest.go();
    await contest.expectHandedOn();
    await contest.first.receives(new RegExp(`^HTTP/1.1 ${status} `));
  });

  it('[release-11] The lock is released with every request of a keep-alive connection', async () => {
    const contest = await Contest.start(framework, (call) => call.send('again'));
    contest.go();
    await contest.expectHandedOn();
    for (let round = 2; round <= 4; round++) {
      contest.first.request({ path: '/first', trace: 'first' });
      await contest.stage.until('first in', round);
      await contest.stage.until('released first k', round);
      await contest.stage.free('k');
    }
    await contest.first.receives(/(again[\s\S]*){4}/);
    await contest.stage.unheard();
  });

  it('[release-12] The lock is released together with what the handler acquired and did not release', async () => {
    const contest = await Contest.start(framework, async (call, stage) => {
      await lock.acquire('other');
      await getLock('k').acquire();
      await lock.run('brief', () => {});
      expect([await stage.holder('other'), await stage.holder('brief')]).toEqual(['first', undefined]);
      stage.note('first answers');
      call.send('first');
    });
    contest.go();
    await contest.expectHandedOn();
    await contest.stage.free('k', 'other', 'brief');
    contest.stage.expectOrder('released first brief', 'first answers', 'released first other', 'released first k');
  });

  it('[release-13] The lock is released with the 404 if no handler responds', async () => {
    const contest = await Contest.start(framework, (call) => {
      if (framework.style === 'callback') call.fail(undefined);
    });
    await contest.expectHeld();
    contest.go();
    await contest.expectHandedOn();
    await contest.first.receives(/^HTTP\/1.1 404 /);
  });
});
