import { getLock, LockConfigError, LockLostError, LockNotHeldError, lock } from '../../../src/core/index.ts';
import { pathOf } from '../../support/path-of.ts';
import { coreTests, outcomeOf } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('Re-entry in one scope', () => {
  it('Re-entry makes no store call, and has the same owner and fence', async () => {
    const { job, store } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key'));
    const calls = store.calls.length;
    const inner = await inJob(() => lock.acquire('key'));
    const tried = await inJob(() => lock.tryAcquire('key'));
    expect(store.calls).toHaveLength(calls);
    expect(inner).not.toBe(outer);
    expect([inner.fence, tried?.fence]).toEqual([outer.fence, outer.fence]);
    expect(pathOf(inner)).toBe(pathOf(outer));
  });

  it('Re-entry needs as many releases as there were acquires, and the store gets the last one', async () => {
    const { job, store } = setUp();
    const { in: inJob } = job();
    const holds = [];
    for (let n = 1; n <= 5; n++) {
      holds.push(await inJob(() => lock.acquire('key')));
      expect(inJob(() => getLock('key').holdCount())).toBe(n);
    }
    const [first, ...others] = holds;
    await first!.release();
    await first!.release();
    for (const hold of others) {
      expect(hold.isHeld()).toBe(true);
      expect(store.count('release')).toBe(0);
      await hold.release();
    }
    expect(store.count('release')).toBe(1);
    expect(inJob(() => getLock('key').holdCount())).toBe(0);
    expect(await job().in(() => lock.tryAcquire('key'))).not.toBeNull();
  });

  it('One release too many is a LockNotHeldError', async () => {
    const { job } = setUp();
    const { in: inJob } = job();
    await inJob(() => lock.acquire('key'));
    await inJob(() => lock.acquire('key'));
    await inJob(() => lock.release('key'));
    await inJob(() => getLock('key').release());
    await expect(inJob(() => lock.release('key'))).rejects.toThrow(LockNotHeldError);
    await expect(inJob(() => getLock('key').release())).rejects.toThrow(LockNotHeldError);
    await expect(job().in(() => lock.release('never'))).rejects.toThrow(LockNotHeldError);
  });

  it('Re-entry works with the same key of the same category only', async () => {
    const { job, store } = setUp();
    const { in: inJob } = job();
    const names = [
      ['b', 'a'],
      ['b', undefined],
      ['a|b', undefined],
      ['a|b', 'a'],
      [' b', 'a'],
    ] as const;
    for (const [index, [key, category]] of names.entries()) {
      await inJob(() => lock.acquire(key, { category }));
      expect(store.count('acquire')).toBe(index + 1);
      const again = await inJob(() => lock.acquire(key, { category }));
      expect(store.count('acquire')).toBe(index + 1);
      expect([again.key, inJob(() => getLock(key, { category }).holdCount())]).toEqual([key, 2]);
    }
  });

  it('Re-entry releases the newest hold first, by key and category', async () => {
    const { job } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key'));
    const inner = await inJob(() => lock.acquire('key'));
    const other = await inJob(() => lock.acquire('key', { category: 'c' }));
    await inJob(() => lock.release('key'));
    expect([outer.isHeld(), inner.isHeld(), other.isHeld()]).toEqual([true, false, true]);
    await inJob(() => lock.release('key', { category: 'c' }));
    expect([outer.isHeld(), other.isHeld()]).toEqual([true, false]);
  });

  it('Re-entry has ended once the last release has begun: the next acquire is a new hold, sent after it', async () => {
    const { job, store, clock } = setUp();
    const { in: inJob } = job();
    const first = await inJob(() => lock.acquire('key'));
    const open = store.gate('release');
    const release = first.release();
    const second = await clock.settled(outcomeOf(inJob(() => lock.acquire('key'))));
    expect(store.calls.map((call) => call.operation).slice(-2)).toEqual(['release', 'acquire']);
    expect(store.calls.at(-1)?.holdId).not.toBe(store.calls.at(-2)?.holdId);
    open();
    await release;
    await clock.settle();
    expect(second.state).toBe('fulfilled');
    expect(second.value?.fence).toBeGreaterThan(first.fence);
  });

  it('Re-entry on a lost hold throws, and never starts a new one', async () => {
    const { job, clock, store } = setUp();
    const { in: inJob } = job();
    const hold = await inJob(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    clock.skip(1_000);
    const calls = store.count('acquire');
    await expect(inJob(() => lock.acquire('key'))).rejects.toThrow(LockLostError);
    await expect(inJob(() => lock.tryAcquire('key'))).rejects.toThrow(LockLostError);
    expect(store.count('acquire')).toBe(calls);
    expect(hold.signal.aborted).toBe(true);
    await hold.release().catch(() => {});
    expect((await inJob(() => lock.acquire('key'))).isHeld()).toBe(true);
  });

  it('Re-entry on a hold that lasted too long names `maxHoldMs`, also if no timer has noticed it yet', async () => {
    const { job, clock } = setUp();
    const { in: inJob } = job();
    await inJob(() => lock.acquire('key', { leaseMs: 2_000, maxHoldMs: 2_000 }));
    clock.skip(2_000);
    const message = 'The lock was lost: it was held for longer than maxHoldMs';
    await expect(inJob(() => lock.acquire('key'))).rejects.toMatchObject({ code: 'ERR_LOCK_LOST', message });
  });
});

describe('Who may re-enter', () => {
  it('Another scope of the same trace enters, with its own hold in the store', async () => {
    const { job, store } = setUp();
    const outer = await job('trace').in(() => lock.acquire('key'));
    const inner = await job('trace').in(() => lock.acquire('key'));
    expect(inner.fence).toBe(outer.fence);
    expect(store.count('acquire')).toBe(2);
    await outer.release();
    expect(inner.isHeld()).toBe(true);
    expect(await job('other').in(() => lock.tryAcquire('key'))).toBeNull();
    await inner.release();
    expect(await job('other').in(() => lock.tryAcquire('key'))).not.toBeNull();
  });

  it("reentrant 'request': only the same scope, not another one of the trace", async () => {
    const { job } = setUp();
    const own = job('trace');
    const outer = await own.in(() => lock.acquire('key', { reentrant: 'request' }));
    const inner = await own.in(() => lock.acquire('key', { reentrant: 'request' }));
    const plain = await own.in(() => lock.acquire('key'));
    expect([inner.fence, plain.fence]).toEqual([outer.fence, outer.fence]);
    expect(pathOf(outer)).toBe('trace');
    expect(await job('trace').in(() => lock.tryAcquire('key'))).toBeNull();
    expect(await job('trace').in(() => lock.tryAcquire('key', { reentrant: 'request' }))).toBeNull();
  });

  it("reentrant 'request' can't narrow what the trace already holds", async () => {
    const { job } = setUp();
    const { in: inJob } = job();
    await inJob(() => lock.acquire('key'));
    await expect(inJob(() => lock.acquire('key', { reentrant: 'request' }))).rejects.toThrow(LockConfigError);
  });
});

describe('The default of a `Locks` for `reentrant`', () => {
  it('With `reentrant: false`, an acquire waits for a hold of its own job, and the job may still ask to re-enter', async () => {
    const { job, clock } = setUp({ reentrant: false });
    const { in: inJob } = job('trace');
    const first = await inJob(() => lock.acquire('key'));
    expect(pathOf(first)).toBe('trace');
    const second = await clock.settled(outcomeOf(inJob(() => lock.acquire('key'))));
    expect(second.state).toBe('pending');
    await first.release();
    await second.settled;
    expect(second.value?.fence).toBeGreaterThan(first.fence);
    const outer = await inJob(() => lock.acquire('other', { reentrant: 'trace' }));
    const inner = await inJob(() => lock.acquire('other', { reentrant: 'trace' }));
    expect([inner.fence, pathOf(inner)]).toEqual([outer.fence, 'trace']);
  });

  it("With `reentrant: 'request'`, a job re-enters its own holds, those for its trace among them, and no other job does", async () => {
    const { job } = setUp({ reentrant: 'request' });
    const own = job('trace');
    const outer = await own.in(() => lock.acquire('key'));
    expect((await own.in(() => lock.acquire('key'))).fence).toBe(outer.fence);
    expect(await job('trace').in(() => lock.tryAcquire('key'))).toBeNull();
    const shared = await own.in(() => lock.acquire('shared', { reentrant: 'trace' }));
    expect((await own.in(() => lock.acquire('shared'))).fence).toBe(shared.fence);
  });
});
