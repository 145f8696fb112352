import { setImmediate as turn } from 'node:timers/promises';
import { getLock, LockConfigError, LockLostError, LockNotHeldError, lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('A hold', () => {
  it('A hold shows its key, its owner and its fence', async () => {
    const { job } = setUp();
    const first = await job('trace-1').in(() => lock.acquire(42, { category: 'order' }));
    expect(first).toMatchObject({ key: '42', traceId: 'trace-1', branch: '' });
    expect(Number.isSafeInteger(first.fence)).toBe(true);
    await first.release();
    const second = await job('trace-2').in(() => lock.acquire('42', { category: 'order' }));
    expect(second.fence).toBeGreaterThan(first.fence);
  });

  it('A hold is released once, however often it is released, and every call returns the same', async () => {
    const { job, store } = setUp();
    const hold = await job().in(() => lock.acquire('key'));
    const first = hold.release();
    expect(hold.isHeld()).toBe(false);
    await Promise.all([first, hold.release(), hold[Symbol.asyncDispose]()]);
    await hold.release();
    expect(store.count('release')).toBe(1);
  });

  it('A hold is disposed of at the end of its block', async () => {
    const { job, store } = setUp();
    await job().in(async () => {
      const hold = await lock.acquire('key');
      await using own = hold;
      expect(own.isHeld()).toBe(true);
    });
    expect(await store.remains()).toEqual([]);
  });

  it('A hold is not held after its release, and assertHeld throws the reason', async () => {
    const { job } = setUp();
    const hold = await job().in(() => lock.acquire('key'));
    expect(() => hold.assertHeld()).not.toThrow();
    await hold.release();
    expect(hold.isHeld()).toBe(false);
    expect(hold.remainingMs()).toBe(0);
    expect(() => hold.assertHeld()).toThrow(LockNotHeldError);
    await expect(hold.extend(1_000)).rejects.toThrow(LockNotHeldError);
    expect(hold.signal.aborted).toBe(false);
  });

  it('A hold asserts a minimum remaining time', async () => {
    const { job, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    expect(() => hold.assertHeld(988)).not.toThrow();
    expect(() => hold.assertHeld(989)).toThrow(LockLostError);
    expect(() => hold.assertHeld(989)).toThrow('it has 988 ms left, 989 were asked for');
    clock.skip(988);
    expect(() => hold.assertHeld()).toThrow('its lease has expired');
  });

  it.each([
    [Number.NaN, '`NaN` (number)'],
    ['500', '`500` (string)'],
    [null, '`null` (null)'],
    [{ leaseMs: 5 }, 'a value of type object'],
  ])('A hold’s assertHeld refuses %p', async (least, got) => {
    const { job } = setUp();
    const refusal = new LockConfigError(`Expected \`minRemainingMs\` to be a number of milliseconds, got ${got}`);
    await job().in(async () => {
      for (const hold of [await lock.acquire('key'), await lock.acquireAll(['other'])]) {
        expect(() => hold.assertHeld(least as number)).toThrow(refusal);
        expect(() => hold.assertHeld(0.5)).not.toThrow();
      }
    });
  });

  it.each([0, -1, 1.5, Number.NaN, '5', null, 2 ** 31])('A hold refuses to be extended by %p', async (leaseMs) => {
    const { job, store } = setUp();
    const hold = await job().in(() => lock.acquire('key'));
    const refused = hold.extend(leaseMs as number);
    await expect(refused).rejects.toThrow(LockConfigError);
    await expect(refused).rejects.toThrow(
      /^Expected `leaseMs` to be a whole number of milliseconds, 100 to 2147483647, got `.*` \(\w+\)$/,
    );
    expect(store.count('renew')).toBe(0);
  });

  it('A hold’s methods work when they are taken off it', async () => {
    const { job } = setUp();
    const { isHeld, remainingMs, assertHeld, extend, waitUntil, release } = await job().in(() => lock.acquire('key'));
    expect(isHeld()).toBe(true);
    expect(remainingMs()).toBeGreaterThan(0);
    assertHeld();
    await extend(40_000);
    expect(remainingMs()).toBeGreaterThan(30_000);
    waitUntil(Promise.resolve());
    await release();
    expect(isHeld()).toBe(false);
  });

  it('A hold rejects its release, too, if the store had forgotten it and has queued a copy of its acquire', async () => {
    const { job, clock, store } = setUp();
    store.next('acquire', { kind: 'duplicate', ms: 500 });
    const hold = await job().in(() => lock.acquire('key'));
    await store.forget();
    await job().in(() => lock.acquire('key'));
    await clock.advance(500);
    expect((await store.inspect('key')).waiters).toHaveLength(1);
    await expect(hold.release()).rejects.toThrow(LockLostError);
    expect((await store.inspect('key')).waiters).toEqual([]);
  });

  it('A hold ends well if the store took the release, and only its first reply was lost', async () => {
    const { job, store, clock, events } = setUp();
    const storeErrors = events('storeError');
    const hold = await job().in(() => lock.acquire('key'));
    store.next('release', { kind: 'rejectedReply', error: new Error('ECONNRESET') });
    const release = outcomeOf(hold.release());
    await clock.advance(100);
    expect(release.state).toBe('fulfilled');
    expect(store.count('release')).toBe(2);
    expect(storeErrors).toEqual([]);
  });

  it.each<[string, (setup: Setup) => Promise<{ release(): Promise<void> }>]>([
    ['a hold', () => lock.acquire('key')],
    ['a batch', () => lock.acquireAll(['key', 'other'])],
    ['a key', () => lock.acquire('key').then(() => getLock('key'))],
    [
      'a key that was lost',
      async ({ clock }) => {
        await lock.acquire('key', { renew: false });
        await clock.advance(20_000);
        return getLock('key');
      },
    ],
  ])('The failed release of %s that nobody awaits ends no process', async (_, take) => {
    const setup = setUp();
    setup.events('lost');
    const unhandled = jest.fn();
    process.on('unhandledRejection', unhandled);
    const { in: inJob } = setup.job();
    const held = await inJob(() => take(setup));
    setup.store.always('release', { kind: 'rejected', error: new Error('down') });
    void inJob(() => held.release());
    await setup.clock.advance(40_000);
    await turn();
    process.off('unhandledRejection', unhandled);
    expect(unhandled).not.toHaveBeenCalled();
    expect(inJob(() => getLock('key').isHeld())).toBe(false);
  });
});

describe('lock.release', () => {
  it('lock.release waits for the reply, and rejects as the release of the hold does', async () => {
    const { job, store, clock } = setUp();
    const own = job();
    await own.in(() => lock.acquire('key'));
    store.always('release', { kind: 'lostCall' });
    const released = outcomeOf(own.in(() => lock.release('key')));
    await clock.advance(1_999);
    expect(released.state).toBe('pending');
    await clock.advance(1);
    expect(released.error).toMatchObject({ code: 'ERR_LOCK_STORE', key: 'key' });
  });
});

describe('getLock', () => {
  it('getLock binds neither scope nor Locks, so that it may be kept', async () => {
    const [a, b] = [setUp(), setUp()];
    const { acquire, isHeld, isLocked, holdCount, release, inspect, tryAcquire, run } = getLock('key');
    const [jobA, jobB] = [a.job(), b.job()];
    await jobA.in(() => acquire());
    expect(jobA.in(() => [isHeld(), holdCount()])).toEqual([true, 1]);
    expect(jobB.in(() => [isHeld(), holdCount()])).toEqual([false, 0]);
    expect(await jobA.in(() => isLocked())).toBe(true);
    expect(await jobB.in(() => isLocked())).toBe(false);
    expect((await jobA.in(() => inspect())).holds).toHaveLength(1);
    expect(await a.job().in(() => tryAcquire())).toBeNull();
    expect(await jobB.in(() => run(() => 'value'))).toBe('value');
    await jobA.in(() => release());
    expect(await jobA.in(() => isLocked())).toBe(false);
  });

  it('getLock inspects holders and waiters in order: on which instance, with what is left and how long they wait', async () => {
    const setup = setUp({ instance: 'orders-1' });
    const { job, clock } = setup;
    const other = setup.sibling({ instance: 'orders-2' });
    const hold = await job('a').in(() => lock.acquire('key', { leaseMs: 10_000 }));
    outcomeOf(other.job('b').in(() => lock.acquire('key')));
    await clock.advance(100);
    outcomeOf(job('c').in(() => lock.acquire('key')));
    await clock.advance(50);
    const { fence } = hold;
    const [one, two] = [
      { holdId: expect.any(String), instance: 'orders-1', mode: 'write' },
      { holdId: expect.any(String), instance: 'orders-2', mode: 'write' },
    ];
    expect(await job().in(() => getLock('key').inspect())).toEqual({
      key: 'key',
      category: undefined,
      holds: [{ ...one, traceId: 'a', branch: '', isDetached: false, fence, remainingMs: 9_850, heldMs: 150 }],
      waiters: [
        { ...two, traceId: 'b', branch: '', priority: 0, waitedMs: 150 },
        { ...one, traceId: 'c', branch: '', priority: 0, waitedMs: 50 },
      ],
    });
  });
});
