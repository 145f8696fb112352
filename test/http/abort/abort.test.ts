import { currentTrace, getLock, isLockError, lock } from 'reenlock';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { type Call, describeFrameworks } from '../../support/http/frameworks.ts';
import type { Protocol } from '../../support/http/protocols.ts';
import type { Hangup } from '../../support/http/raw-client.ts';
import { clientLeaves } from '../../support/http/server-stage.ts';

const hangups: Hangup[] = ['FIN', 'RST'];

describeFrameworks('A client that hangs up while its handler runs', (framework) => {
  it.each<[Hangup, Protocol]>([
    ['FIN', 'HTTP/1.1'],
    ['RST', 'HTTP/1.1'],
    ['FIN', 'HTTPS'],
    ['RST', 'HTTPS'],
  ])(
    '[abort-01] A handler whose client hangs up gets the signal, keeps and renews its hold, and may acquire more until its late response (%s, %s)',
    async (how, protocol) => {
      const clock = new ManualClock();
      const work = gate();
      const contest = await Contest.start(
        framework,
        { guard: { leaseMs: 5_000 }, locks: { clock, waitMs: Number.POSITIVE_INFINITY, protocol } },
        async (call, stage) => {
          await clientLeaves(stage);
          // What is called with the signal fails with it: applications know it by its name.
          stage.note(`first is told ${currentTrace()?.signal.reason}`);
          await work;
          await lock.acquire('other account');
          stage.note(`first still holds ${getLock('k').isHeld()}`);
          call.send('late');
          stage.note('first answers');
        },
      );
      contest.go();
      await contest.expectStillHeld();
      await contest.first.hangUp(how);
      await contest.stage.until('first hears');
      await clock.advance(25_000);
      await contest.expectStillHeld();
      expect(contest.stage.count('renewed first k')).toBeGreaterThanOrEqual(10);
      work.open();
      await contest.expectHandedOn();
      contest.stage.expectOrder(
        'first hears',
        'first is told AbortError: The client disconnected',
        'first still holds true',
        'first answers',
        'released first k',
        'second in',
      );
      await contest.stage.free('other account');
      expect(contest.stage.journal).not.toContain('lost first k');
    },
  );

  it.each([
    ['end', 'FIN'],
    ['end', 'RST'],
    ['destroy', 'FIN'],
    ['destroy', 'RST'],
  ] as const)('[abort-02] A late res.%s() ends the work after the client has hung up (%s)', async (method, how) => {
    const later = gate();
    const contest = await Contest.start(framework, (call) => {
      call.detach();
      void later.then(() => call.res[method]());
    });
    contest.go();
    await contest.expectStillHeld();
    await contest.first.hangUp(how);
    await contest.expectHeldUntil(later);
  });

  it.each(hangups)(
    '[abort-11] A handler that destroys its response when its request emits `aborted` releases the lock at once (%s)',
    async (how) => {
      const contest = await Contest.start(framework, (call, stage) => {
        call.detach();
        call.req.once('aborted', () => {
          stage.note(`first is destroyed: ${call.req.socket.destroyed}`);
          call.res.destroy();
        });
        stage.note('first listens');
      });
      contest.go();
      await contest.stage.until('first listens');
      await contest.first.hangUp(how);
      // The connection is destroyed, and has not yet emitted `close`.
      await contest.stage.until('first is destroyed: true');
      await contest.expectHandedOn();
    },
  );

  it('[abort-03] A handler whose first res.end() threw keeps its hold after its client has hung up', async () => {
    const later = gate();
    const contest = await Contest.start(framework, (call, stage) => {
      call.detach();
      expect(() => call.res.end(42)).toThrow('chunk');
      stage.note('first failed');
      void later.then(() => call.res.end());
    });
    contest.go();
    await contest.stage.until('first failed');
    await contest.expectStillHeld();
    await contest.first.hangUp();
    await contest.expectHeldUntil(later);
  });

  const failures: [string, (call: Call) => unknown][] = [
    ['fails in the framework’s way', (call) => call.fail(new Error('too late'))],
  ];
  if (framework.answersRejections) failures.push(['rejects', () => Promise.reject(new Error('too late'))]);

  it.each(failures)('[abort-04] The hold ends if the handler then %s', async (_, fail) => {
    const work = gate();
    const contest = await Contest.start(framework, async (call, stage) => {
      await clientLeaves(stage);
      await work;
      return fail(call);
    });
    contest.go();
    await contest.first.hangUp();
    await contest.stage.until('first hears');
    await contest.expectHeldUntil(work);
  });

  it.each(hangups)(
    `[abort-05] A handler that returns without a response ${framework.endsResponses ? 'ends its hold' : 'loses its hold after abortGraceMs'} (%s)`,
    async (how) => {
      const clock = new ManualClock();
      const contest = await Contest.start(
        framework,
        { locks: { clock, waitMs: Number.POSITIVE_INFINITY } },
        (_, stage) => clientLeaves(stage),
      );
      contest.go();
      await contest.first.hangUp(how);
      await contest.stage.until('first hears');
      if (framework.endsResponses) await contest.expectHandedOn();
      else await contest.expectHeldForGrace(clock);
      expect(contest.stage.count('lost first k')).toBe(framework.endsResponses ? 0 : 1);
    },
  );

  it('[abort-06] A handler that never ends loses its hold after abortGraceMs', async () => {
    const clock = new ManualClock();
    const contest = await Contest.start(framework, { locks: { clock, abortGraceMs: 4_000 } }, async (call, stage) => {
      const { lock } = call;
      lock?.signal.addEventListener('abort', () => {
        stage.note(isLockError(lock.signal.reason) ? lock.signal.reason.code : 'other reason');
      });
      await clientLeaves(stage);
      await new Promise(() => {});
    });
    contest.go();
    await contest.first.hangUp();
    await contest.stage.until('first hears');
    await contest.expectHeldForGrace(clock, 4_000);
    contest.stage.expectOrder('first hears', 'ERR_LOCK_LOST', 'lost first k', 'second in');
  });

  it('[abort-07] Work in waitUntil keeps the hold after the response, though the client has hung up', async () => {
    const work = gate();
    const contest = await Contest.start(framework, (call) => {
      call.lock?.waitUntil(work);
      call.send('first');
    });
    contest.go();
    await contest.first.receives(/first/);
    await contest.first.hangUp();
    await contest.expectHeldUntil(work);
  });
});

describeFrameworks('A connection that ends without its client', (framework) => {
  it('[abort-08] A connection that ends by a timeout leaves the hold to its handler', async () => {
    const work = gate();
    const contest = await Contest.start(framework, async (call, stage) => {
      call.req.socket.setTimeout(20);
      await clientLeaves(stage);
      await work;
      call.send('late');
    });
    contest.go();
    await contest.stage.until('first hears');
    await contest.first.closed;
    await contest.expectHeldUntil(work);
  });

  it('[abort-09] A server that closes leaves holds to their handlers and takes the waiters out of the queue', async () => {
    const work = gate();
    const contest = await Contest.start(framework, async (call, stage) => {
      await clientLeaves(stage);
      await work;
      stage.note('first answers');
      call.send('late');
    });
    const refused = expect(contest.second).rejects.toThrow(/socket hang up|ECONNRESET/);
    contest.go();
    await contest.stage.shutDown();
    await refused;
    await contest.stage.until('first hears');
    await contest.stage.until('aborted second k');
    expect([await contest.stage.holder('k'), await contest.stage.waiters('k')]).toEqual(['first', []]);
    work.open();
    await contest.stage.free('k');
    contest.stage.expectOrder('first answers', 'released first k');
    expect(contest.stage.journal).not.toContain('second in');
  });
});

describeFrameworks('Server code that destroys the connection', (framework) => {
  it.each<[string, (call: Call) => unknown, Protocol?]>([
    ['req.destroy()', (call) => call.req.destroy()],
    ['req.destroy() over TLS', (call) => call.req.destroy(), 'HTTPS'],
    ['res.destroy()', (call) => call.res.destroy()],
    ['req.socket.destroy()', (call) => call.req.socket.destroy()],
    [
      'res.destroy() in the middle of the answer',
      (call) => {
        call.detach();
        call.res.write('half');
        call.res.destroy();
      },
    ],
  ])(
    '[abort-10] Server code that destroys the connection ends the work: %s',
    async (_, destroy, protocol = 'HTTP/1.1') => {
      const contest = await Contest.start(framework, { locks: { protocol } }, destroy);
      await contest.expectHeld();
      contest.go();
      await contest.expectHandedOn();
      await contest.first.closed;
    },
  );
});
