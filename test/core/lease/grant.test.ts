import { LockLostError, LockStoreError, lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const fixed = { leaseMs: 10_000, renew: false } as const;
/** What 10 000 ms are locally: less 1 % and 2 ms. */
const localMs = 9_898;

describe('The local deadline', () => {
  it('The local deadline is the lease less 1 % and 2 ms', async () => {
    const { job } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    expect(hold.remainingMs()).toBe(localMs);
  });

  it('The local deadline counts from before the call was sent, not from its reply', async () => {
    const { job, store, clock } = setUp();
    store.next('acquire', { kind: 'lateReply', ms: 700 });
    const acquired = job().in(() => lock.acquire('key', fixed));
    await clock.advance(700);
    expect((await acquired).remainingMs()).toBe(localMs - 700);
  });

  it('The local deadline approaches with time, and has passed at zero', async () => {
    const { job, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    clock.skip(localMs - 1);
    expect([hold.isHeld(), hold.remainingMs()]).toEqual([true, 1]);
    clock.skip(1);
    expect([hold.isHeld(), hold.remainingMs()]).toEqual([false, 0]);
    clock.skip(100_000);
    expect(hold.remainingMs()).toBe(0);
  });

  it('The local deadline counts a wall clock that went on while the monotonic one stood still: the machine slept', async () => {
    const { job, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    clock.jumpWall(localMs - 1);
    expect(hold.remainingMs()).toBe(1);
    clock.jumpWall(1);
    expect(hold.isHeld()).toBe(false);
  });

  it('The local deadline counts the monotonic clock if the wall clock was set back', async () => {
    const { job, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    clock.jumpWall(-3_600_000);
    expect(hold.remainingMs()).toBe(localMs);
    clock.skip(localMs);
    expect(hold.isHeld()).toBe(false);
  });

  it('The local deadline never becomes later because the wall clock is set back after it had passed', async () => {
    const { job, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    clock.jumpWall(localMs);
    await clock.advance(localMs);
    clock.jumpWall(-localMs);
    expect(hold.isHeld()).toBe(false);
  });

  it('The local deadline is never beyond the lease because a wall clock that went ahead was set back', async () => {
    const { job, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 10_000, renew: false, maxHoldMs: 18_000 }));
    clock.jumpWall(9_000);
    await hold.extend(10_000);
    expect(hold.remainingMs()).toBe(9_000);
    clock.jumpWall(-9_000);
    clock.skip(10_000);
    const next = await job().in(() => lock.acquire('key'));
    expect([hold.isHeld(), next.isHeld()]).toEqual([false, true]);
  });

  it('The local deadline is before the end of the lease in the store, which grants the next owner', async () => {
    const { job, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    await clock.advance(localMs);
    expect(hold.isHeld()).toBe(false);
    expect(await job().in(() => lock.tryAcquire('key'))).toBeNull();
    await clock.advance(10_000 - localMs);
    expect(await job().in(() => lock.tryAcquire('key'))).not.toBeNull();
  });
});

describe('A grant whose reply is late', () => {
  it('A grant is released if its lease had expired on arrival', async () => {
    const { job, store, clock } = setUp({ storeTimeoutMs: 60_000 });
    store.next('acquire', { kind: 'lateReply', ms: 989 });
    const acquired = outcomeOf(job().in(() => lock.acquire('key', { leaseMs: 1_000 })));
    await clock.advance(989);
    expect(acquired.state).toBe('rejected');
    expect(acquired.error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    expect(await store.remains()).toEqual([]);
    expect(store.count('release')).toBe(1);
  });

  it('A grant after storeTimeoutMs is an error to its caller, and nothing stays held', async () => {
    const { job, store, clock } = setUp();
    store.next('acquire', { kind: 'lateReply', ms: 5_000 });
    const acquired = outcomeOf(job().in(() => lock.acquire('key')));
    await clock.advance(1_999);
    expect(acquired.state).toBe('pending');
    await clock.advance(1);
    expect(acquired.error).toBeInstanceOf(LockStoreError);
    expect(await store.remains()).toEqual([]);
    await clock.advance(4_000);
    expect(await store.remains()).toEqual([]);
  });
});

describe('A fixed lease', () => {
  it('A fixed lease is never renewed, and ends', async () => {
    const { job, store, clock, events } = setUp();
    const lost = events('lost');
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    await clock.advance(987);
    expect(hold.isHeld()).toBe(true);
    await clock.advance(1);
    expect(hold.isHeld()).toBe(false);
    expect(hold.signal.reason).toBeInstanceOf(LockLostError);
    expect(lost).toHaveLength(1);
    expect(store.count('renew')).toBe(0);
  });

  it('A fixed lease that was handed over ends a lease after the hand-over', async () => {
    const { job, clock, store } = setUp({ claimMs: 300 });
    const first = await job().in(() => lock.acquire('key'));
    const second = job().in(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    await clock.settle();
    await first.release();
    const hold = await second;
    await clock.advance(900);
    expect(hold.isHeld()).toBe(true);
    expect(store.count('renew')).toBe(1);
    await clock.advance(100);
    expect(hold.isHeld()).toBe(false);
    expect(store.count('renew')).toBe(1);
  });
});

describe('extend', () => {
  it('extend makes the lease end no earlier than asked, counted from before the call', async () => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    clock.skip(500);
    store.next('renew', { kind: 'lateReply', ms: 100 });
    const extended = hold.extend(10_000);
    await clock.advance(100);
    await extended;
    expect(hold.remainingMs()).toBe(localMs - 100);
  });

  it('extend never makes the lease shorter', async () => {
    const { job } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    await hold.extend(100);
    expect(hold.remainingMs()).toBe(localMs);
  });

  it('extend never makes the lease shorter, not by the late reply to an earlier renewal either', async () => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    const open = store.gate('renew');
    await clock.advance(990);
    await hold.extend(10_000);
    open();
    await clock.settle();
    expect(hold.remainingMs()).toBe(localMs);
  });

  it('extend never reaches beyond maxHoldMs', async () => {
    const { job, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 1_000, maxHoldMs: 5_000, renew: false }));
    await hold.extend(60_000);
    expect(hold.remainingMs()).toBeLessThanOrEqual(5_000);
    await clock.advance(5_000);
    expect(hold.isHeld()).toBe(false);
  });

  it('extend of a lost hold rejects, and makes no store call', async () => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    clock.skip(1_000);
    await expect(hold.extend(1_000)).rejects.toThrow(LockLostError);
    expect(store.count('renew')).toBe(0);
  });

  it('extend rejects if the store did not reply in time, and the hold lives on by its present lease', async () => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    store.next('renew', { kind: 'lostReply' });
    const extended = outcomeOf(hold.extend(60_000));
    await clock.advance(2_000);
    expect(extended.error).toBeInstanceOf(LockStoreError);
    expect(hold.remainingMs()).toBe(localMs - 2_000);
  });

  it('extend rejects if the hold was lost meanwhile, and the hold reports that', async () => {
    const { job, store } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    const { signal } = hold;
    await store.forget();
    await expect(hold.extend(1_000)).rejects.toThrow(LockLostError);
    expect([hold.isHeld(), signal.aborted]).toEqual([false, true]);
  });

  it('extend during the release changes nothing', async () => {
    const { job, store } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    const open = store.gate('renew');
    const extended = outcomeOf(hold.extend(60_000));
    await hold.release();
    open();
    await Promise.resolve();
    expect(hold.remainingMs()).toBe(0);
    await expect(hold.extend(500)).rejects.toThrow();
    expect(await store.remains()).toEqual([]);
    expect(extended.state).not.toBe('fulfilled');
  });
});
