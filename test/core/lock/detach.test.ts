import {
  HoldTokenError,
  LockConfigError,
  LockLostError,
  LockNotHeldError,
  LockScopeError,
  LockStoreError,
  LocksClosedError,
  lock,
  resumeHold,
} from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { pathOf } from '../../support/path-of.ts';
import { coreTests, type Job, outcomeOf, queued, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

/** A hold on `key` that was detached in a job that is over. */
async function detached(setup: ReturnType<typeof setUp>, leaseMs = 60_000): Promise<string> {
  const job = setup.job();
  const hold = await job.in(() => lock.acquire('key'));
  const token = await job.in(() => hold.detach({ leaseMs }));
  await job.end();
  return token;
}

/** Resumes the hold in a branch of a job, and releases it when the work is done. */
function resumedInBranch(job: Job, token: string, work: PromiseLike<unknown>): Promise<void> {
  return job.in(() =>
    lock.run('other', async () => {
      const hold = await resumeHold(token);
      await work;
      await hold.release();
    }),
  );
}

describe('A detached hold', () => {
  it('outlives its job, and is a hold of the job that resumes it: with the trace as its owner, and a higher fence', async () => {
    const setup = setUp();
    const first = setup.job();
    const hold = await first.in(() => lock.acquire('key'));
    const token = await first.in(() => hold.detach({ leaseMs: 60_000 }));
    expect([hold.isHeld(), hold.remainingMs(), hold.signal.aborted]).toEqual([false, 0, false]);
    await hold.release();
    await first.end();
    expect(await setup.job().in(() => lock.tryAcquire('key'))).toBeNull();
    const second = setup.job('second');
    const resumed = await second.in(() => resumeHold(token));
    expect([resumed.key, pathOf(resumed), resumed.isHeld()]).toEqual(['key', 'second', true]);
    expect(resumed.fence).toBeGreaterThan(hold.fence);
    expect((await second.in(() => lock.acquire('key'))).fence).toBe(resumed.fence);
    await second.end();
    expect(await setup.job().in(() => lock.tryAcquire('key'))).not.toBeNull();
  });

  it('needs a store whose holds can be detached: else detach fails with the key and its category, and the hold stays held', async () => {
    const setup = setUp();
    Object.assign(setup.store, { capabilities: { ...setup.store.capabilities, transfer: false } });
    const job = setup.job();
    const hold = await job.in(() => lock.acquire('key', { category: 'orders' }));
    const error = await hold.detach({ leaseMs: 60_000 }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'ERR_LOCK_CONFIG', key: 'key', category: 'orders' });
    expect(hold.isHeld()).toBe(true);
    await job.end();
  });

  it('lets in what waits for it in a service that the resuming request had called, at once and with the same fence', async () => {
    const setup = setUp();
    const token = await detached(setup);
    const stranger = await queued(setup, { waitMs: 60_000 });
    const caller = setup.job('T');
    const called = setup.sibling().job('T');
    const waiting = await setup.clock.settled(outcomeOf(called.in(() => lock.acquire('key', { waitMs: 60_000 }))));
    expect(waiting.state).toBe('pending');
    const resumed = await caller.in(() => resumeHold(token));
    await waiting.settled;
    expect(waiting.value).toMatchObject({ fence: resumed.fence });
    expect(stranger.state).toBe('pending');
  });

  it('belongs to the branch that resumes it: its nested calls enter, and other branches of the request wait', async () => {
    const setup = setUp();
    const token = await detached(setup);
    const log: string[] = [];
    const work = (name: string) => async (): Promise<void> => {
      log.push(`${name} begins`);
      await setup.clock.advance(100);
      log.push(`${name} ends`);
    };
    await setup.job().in(() => {
      const resuming = lock.run('other', async () => {
        const hold = await resumeHold(token);
        await lock.run('key', work('nested'));
        await work('resumed')();
        await hold.release();
      });
      return Promise.all([lock.run('key', work('sibling')), resuming]);
    });
    expect(log).toEqual([
      'nested begins',
      'nested ends',
      'resumed begins',
      'resumed ends',
      'sibling begins',
      'sibling ends',
    ]);
  });

  it('If two branches of one bare trace id want it, the second one waits while the first one resumes it', async () => {
    const setup = setUp();
    const token = await detached(setup);
    const job = setup.job('bare');
    const open = setup.store.gate('transfer');
    const work = gate();
    const resuming = resumedInBranch(job, token, work);
    await setup.clock.settle();
    const second = outcomeOf(job.in(() => lock.run('key', async () => undefined)));
    open();
    await setup.clock.settle();
    expect(second.state).toBe('pending');
    work.open();
    await resuming;
    await second.settled;
    expect(second.state).toBe('fulfilled');
  });

  it('If a branch of a bare trace id waits for it, and another one resumes it, the first one waits on', async () => {
    const setup = setUp();
    const token = await detached(setup);
    const job = setup.job('bare');
    const waiter = outcomeOf(job.in(() => lock.run('key', async () => 'inside')));
    await setup.clock.settle();
    const work = gate();
    const resuming = resumedInBranch(job, token, work);
    await setup.clock.settle();
    expect(waiter.state).toBe('pending');
    work.open();
    await resuming;
    await waiter.settled;
    expect(waiter.value).toBe('inside');
  });

  it('is not renewed: its lease alone ends it, and then its waiter gets the key and its token is refused', async () => {
    const setup = setUp();
    const token = await detached(setup, 30_000);
    const waiter = await queued(setup, { waitMs: 60_000 });
    await setup.clock.advance(29_000);
    expect(waiter.state).toBe('pending');
    await setup.clock.advance(2_000);
    await waiter.settled;
    expect(waiter.state).toBe('fulfilled');
    await expect(setup.job().in(() => resumeHold(token))).rejects.toThrow(HoldTokenError);
    expect(waiter.value!.isHeld()).toBe(true);
  });

  it('may last longer than `maxHoldMs`, which counts anew when it is resumed', async () => {
    const setup = setUp({ maxHoldMs: 20_000 });
    const token = await detached(setup, 100_000);
    await setup.clock.advance(90_000);
    const resumed = await setup.job().in(() => resumeHold(token));
    await setup.clock.advance(19_000);
    expect(resumed.isHeld()).toBe(true);
    await setup.clock.advance(2_000);
    expect(resumed.isHeld()).toBe(false);
  });

  it('is renewed again once it is resumed, and can be detached again: the old token is dead, the new one works', async () => {
    const setup = setUp();
    const token = await detached(setup);
    const job = setup.job();
    const resumed = await job.in(() => resumeHold(token, { leaseMs: 1_000 }));
    await setup.clock.advance(10_000);
    expect(resumed.isHeld()).toBe(true);
    const next = await job.in(() => resumed.detach({ leaseMs: 60_000 }));
    await job.end();
    await expect(setup.job().in(() => resumeHold(token))).rejects.toThrow(HoldTokenError);
    expect((await setup.job().in(() => resumeHold(next))).isHeld()).toBe(true);
  });

  it('Of two processes that resume one token at the same time, one gets the hold', async () => {
    const setup = setUp();
    const token = await detached(setup);
    const other = setup.sibling();
    const outcomes = [setup, other].map((each) => outcomeOf(each.job().in(() => resumeHold(token))));
    await Promise.all(outcomes.map(({ settled }) => settled));
    expect(outcomes.map(({ state }) => state).sort()).toEqual(['fulfilled', 'rejected']);
    expect(outcomes.find(({ state }) => state === 'rejected')?.error).toBeInstanceOf(HoldTokenError);
  });

  it('can be force released: its token is refused then', async () => {
    const setup = setUp();
    const token = await detached(setup);
    expect(await setup.locks.forceRelease('key')).toBe(true);
    await expect(setup.job().in(() => resumeHold(token))).rejects.toThrow(HoldTokenError);
    expect(await setup.job().in(() => lock.tryAcquire('key'))).not.toBeNull();
  });

  it('stays when its process shuts down, and is shown as detached, without what would resume it', async () => {
    const setup = setUp();
    const other = setup.sibling();
    const token = await detached(setup);
    await setup.locks.close({ drainMs: 0 });
    const { holds } = await other.locks.inspect('key');
    expect(holds).toMatchObject([{ isDetached: true, instance: undefined, mode: 'write' }]);
    expect(token).not.toContain(holds[0]!.holdId);
    const resumed = await other.job().in(() => resumeHold(token));
    expect((await other.locks.inspect('key')).holds).toMatchObject([{ isDetached: false, fence: resumed.fence }]);
  });

  it('of a reader is shared with readers as before', async () => {
    const setup = setUp();
    const job = setup.job();
    const hold = await job.in(() => lock.acquire('key', { mode: 'read', category: 'seats' }));
    const token = await job.in(() => hold.detach({ leaseMs: 60_000 }));
    expect(await setup.job().in(() => lock.tryAcquire('key', { category: 'seats' }))).toBeNull();
    expect(await setup.job().in(() => lock.tryAcquire('key', { mode: 'read', category: 'seats' }))).not.toBeNull();
    const resumed = await setup.job().in(() => resumeHold(token));
    expect(await setup.job().in(() => lock.tryAcquire('key', { category: 'seats' }))).toBeNull();
    expect(resumed.isHeld()).toBe(true);
  });

  it('tells its events: each `granted` and `resumed` ends in one of `released`, `lost` and `detached`', async () => {
    const setup = setUp();
    const seen: string[] = [];
    for (const event of ['granted', 'resumed', 'released', 'lost', 'detached'] as const)
      setup.locks.on(event, ({ holdId }) => seen.push(`${event} ${holdId}`));
    const details = setup.events('detached');
    const job = setup.job('trace');
    const token = await job.in(async () => (await lock.acquire('key')).detach({ leaseMs: 5_000 }));
    const resumed = await job.in(() => resumeHold(token));
    await resumed.release();
    const [first, second] = [seen[0]!.split(' ')[1], seen[2]!.split(' ')[1]];
    expect(seen).toEqual([`granted ${first}`, `detached ${first}`, `resumed ${second}`, `released ${second}`]);
    expect(details).toMatchObject([{ key: 'key', traceId: 'trace', branch: '', leaseMs: 5_000, heldMs: 0 }]);
  });

  it('`run` returns the token of a hold that its routine detached', async () => {
    const setup = setUp();
    const token = await setup.job().in(() => lock.run('key', (hold) => hold.detach({ leaseMs: 60_000 })));
    expect((await setup.job().in(() => resumeHold(token))).isHeld()).toBe(true);
  });
});

describe('Tokens', () => {
  it('that are forged or altered in any place are refused, and the hold stays', async () => {
    const setup = setUp();
    const token = await detached(setup);
    const altered = [...token].map((sign, at) => token.slice(0, at) + (sign === 'A' ? 'B' : 'A') + token.slice(at + 1));
    const forged = [undefined, null, 42, {}, '', 'v1', 'v1..', `v1.!.${'0'.repeat(32)}`, `v1.bm9uZQ.${'0'.repeat(32)}`];
    const others = [`${token} `, `${token}\n`, token.toUpperCase(), token.slice(1), token + token];
    for (const each of [...altered, ...forged, ...others]) {
      await expect(setup.job().in(() => resumeHold(each as string))).rejects.toThrow(HoldTokenError);
    }
    expect((await setup.job().in(() => resumeHold(token))).isHeld()).toBe(true);
  });

  it('A refusal is a 410, and its message names no key', async () => {
    const setup = setUp();
    const token = await detached(setup);
    await setup.job().in(() => resumeHold(token));
    const error = (await setup.job().in(() => resumeHold(token).catch((reason: unknown) => reason))) as HoldTokenError;
    expect([error.status, error.code, error.key, error.expose]).toEqual([410, 'ERR_LOCK_TOKEN', 'key', true]);
    expect(error.message).not.toContain('key');
  });
});

describe('detach refuses', () => {
  it('what has no lease, or one that is none, and leaves the hold as it was', async () => {
    const setup = setUp();
    const { in: inJob } = setup.job();
    const hold = await inJob(() => lock.acquire('key'));
    for (const options of [undefined, {}, { leaseMs: 5 }, { leaseMs: Number.POSITIVE_INFINITY }, { waitMs: 5 }])
      await expect(inJob(() => hold.detach(options as never))).rejects.toThrow(LockConfigError);
    expect(hold.isHeld()).toBe(true);
  });

  it('a hold that its scope has re-entered, and leaves it as it was', async () => {
    const setup = setUp();
    const { in: inJob } = setup.job();
    const hold = await inJob(() => lock.acquire('key'));
    const inner = await inJob(() => lock.acquire('key'));
    await expect(inJob(() => hold.detach({ leaseMs: 60_000 }))).rejects.toThrow(
      /only hold that a request or job has.*one of 2/,
    );
    expect(hold.isHeld()).toBe(true);
    await inner.release();
    await inJob(() => hold.detach({ leaseMs: 60_000 }));
  });

  it('a hold alongside one of another scope of its trace, and releases it', async () => {
    const setup = setUp();
    const released = setup.events('released');
    const [one, two] = [setup.job('trace'), setup.job('trace')];
    const hold = await one.in(() => lock.acquire('key'));
    const other = await two.in(() => lock.acquire('key'));
    await expect(one.in(() => hold.detach({ leaseMs: 60_000 }))).rejects.toThrow(LockConfigError);
    await setup.clock.settle();
    expect([hold.isHeld(), other.isHeld(), released.length]).toEqual([false, true, 1]);
  });

  it('a hold that was released, and one that was lost', async () => {
    const setup = setUp();
    const { in: inJob } = setup.job();
    const hold = await inJob(() => lock.acquire('key'));
    await hold.release();
    await expect(inJob(() => hold.detach({ leaseMs: 60_000 }))).rejects.toThrow(LockNotHeldError);
    const lost = await inJob(() => lock.acquire('key'));
    await setup.locks.forceRelease('key');
    await setup.clock.settle();
    await expect(inJob(() => lost.detach({ leaseMs: 60_000 }))).rejects.toThrow(LockLostError);
  });

  it('a hold that the store finds lost', async () => {
    const setup = setUp();
    const lost = setup.events('lost');
    const { in: inJob } = setup.job();
    const hold = await inJob(() => lock.acquire('key'));
    await setup.store.forget();
    await expect(inJob(() => hold.detach({ leaseMs: 60_000 }))).rejects.toThrow(LockLostError);
    await setup.clock.settle();
    expect(lost).toHaveLength(1);
  });
});

describe('resumeHold refuses', () => {
  it('outside of a scope, in one that has ended, and after the Locks was closed; the token stays good', async () => {
    const setup = setUp();
    const token = await detached(setup);
    await expect(resumeHold(token)).rejects.toThrow(LockScopeError);
    const job = setup.job();
    await job.end();
    await expect(job.in(() => resumeHold(token))).rejects.toThrow(LockScopeError);
    const closed = setup.sibling();
    await closed.locks.close();
    await expect(closed.job().in(() => resumeHold(token))).rejects.toThrow(LocksClosedError);
    expect((await setup.job().in(() => resumeHold(token))).isHeld()).toBe(true);
  });

  it('If its job ends while the store is asked, the hold is released', async () => {
    const setup = setUp();
    const token = await detached(setup);
    const job = setup.job();
    const open = setup.store.gate('transfer');
    const outcome = outcomeOf(job.in(() => resumeHold(token)));
    await job.end();
    open();
    await outcome.settled;
    expect(outcome.error).toBeInstanceOf(LockScopeError);
    await setup.clock.settle();
    expect(await setup.job().in(() => lock.tryAcquire('key'))).not.toBeNull();
  });
});

describe('A store that fails', () => {
  it('that was not reached leaves the token good', async () => {
    const setup = setUp();
    const token = await detached(setup);
    const error = new LockStoreError('refused', { outcome: 'not-applied' });
    setup.store.next('transfer', { kind: 'rejected', error });
    await expect(setup.job().in(() => resumeHold(token))).rejects.toThrow(LockStoreError);
    expect((await setup.job().in(() => resumeHold(token))).isHeld()).toBe(true);
  });

  it.each([
    { kind: 'lostReply' },
    { kind: 'lostCall' },
    { kind: 'lateCall', ms: 3_000 },
    { kind: 'lateReply', ms: 3_000 },
  ] as const)('that does not reply to detach ($kind): the hold is released, and nothing is left', async (fault) => {
    const setup = setUp();
    const { in: inJob } = setup.job();
    const hold = await inJob(() => lock.acquire('key'));
    setup.store.next('transfer', fault);
    const outcome = outcomeOf(inJob(() => hold.detach({ leaseMs: 60_000 })));
    await setup.clock.advance(4_000);
    await outcome.settled;
    expect(outcome.error).toBeInstanceOf(LockStoreError);
    expect(await setup.store.remains()).toEqual([]);
  });

  it.each([{ kind: 'lostReply' }, { kind: 'lateReply', ms: 3_000 }] as const)(
    'that does not reply to resumeHold, although it did it ($kind): the hold is released',
    async (fault) => {
      const setup = setUp();
      const token = await detached(setup);
      setup.store.next('transfer', fault);
      const outcome = outcomeOf(setup.job().in(() => resumeHold(token)));
      await setup.clock.advance(4_000);
      await outcome.settled;
      expect(outcome.error).toBeInstanceOf(LockStoreError);
      expect(await setup.store.remains()).toEqual([]);
      await expect(setup.job().in(() => resumeHold(token))).rejects.toThrow(HoldTokenError);
    },
  );

  it('A call that arrives twice gives one hold, also after its release', async () => {
    const setup = setUp();
    const token = await detached(setup);
    setup.store.next('transfer', { kind: 'duplicate', ms: 500 });
    const job = setup.job();
    const resumed = await job.in(() => resumeHold(token));
    await resumed.release();
    const next = await taken(setup);
    await setup.clock.advance(1_000);
    expect((await setup.locks.inspect('key')).holds).toHaveLength(1);
    expect(next.isHeld()).toBe(true);
  });
});
