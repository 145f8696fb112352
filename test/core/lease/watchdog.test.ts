import { LockLostError, LockStoreError, lock } from '../../../src/core/index.ts';
import type { StoreCall } from '../../support/stores/fake-store.ts';
import { coreTests, outcomeOf } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const down = { kind: 'rejected', error: new Error('ECONNREFUSED') } as const;

function times(calls: readonly StoreCall[], operation: StoreCall['operation'], sinceMs: number): number[] {
  return calls.filter((call) => call.operation === operation).map((call) => Math.round(call.atMs - sinceMs));
}

describe('The watchdog', () => {
  it('The watchdog renews at a third of the lease, again and again, and the hold stays', async () => {
    const { job, store, clock, events } = setUp();
    const renewed = events('renewed');
    const startMs = clock.now().monoMs;
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    await clock.advance(10_000);
    // A third of the local deadline: 3 000 less 1 % and 2 ms.
    expect(times(store.calls, 'renew', startMs)).toEqual([990, 1980, 2970, 3960, 4950, 5940, 6930, 7920, 8910, 9900]);
    expect(hold.isHeld()).toBe(true);
    expect(renewed).toHaveLength(10);
    expect(renewed[0]).toMatchObject({ key: 'key', traceId: hold.traceId, branch: hold.branch, remainingMs: 2_968 });
  });

  it('The watchdog goes on at a third of the lease if the store’s clock was set back, and promises no more than was asked for', async () => {
    const { job, store, clock } = setUp();
    const startMs = clock.now().monoMs;
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    const renew = store.renew.bind(store);
    store.renew = async (request, terms) => {
      const reply = await renew(request, terms);
      return reply.status === 'renewed' ? { ...reply, nowMs: reply.nowMs - 86_400_000 } : reply;
    };
    await clock.advance(2_000);
    expect(times(store.calls, 'renew', startMs)).toEqual([990, 1980]);
    expect(hold.remainingMs()).toBeLessThan(3_000);
    await hold.extend(9_000);
    expect(Math.round(hold.remainingMs())).toBe(9_000 - 90 - 2);
  });

  it('The watchdog has one timer, however many holds', async () => {
    const { job, clock } = setUp();
    const { in: inJob } = job();
    await inJob(() => lock.acquire('key-0', { leaseMs: 3_000 }));
    await clock.advance(2_000);
    const one = clock.timerCount;
    for (let n = 1; n <= 50; n++) await inJob(() => lock.acquire(`key-${n}`, { leaseMs: 3_000 }));
    await clock.advance(2_000);
    expect(clock.timerCount).toBe(one);
  });

  it('The watchdog sends the renewals of a tick together', async () => {
    const { job, clock, store } = setUp();
    const { in: inJob } = job();
    for (let n = 0; n < 10; n++) {
      await inJob(() => lock.acquire(`key-${n}`));
      await clock.advance(10);
    }
    await clock.advance(4_000);
    expect(store.count('renew')).toBe(10);
    expect(new Set(times(store.calls, 'renew', 0)).size).toBe(1);
  });

  it('The watchdog renews from a fresh grant on while earlier ones are released', async () => {
    const { job, clock, store } = setUp();
    const { in: inJob } = job();
    const first = await inJob(() => lock.acquire('a', { leaseMs: 3_000 }));
    await clock.advance(500);
    const second = await inJob(() => lock.acquire('b', { leaseMs: 3_000 }));
    await first.release();
    await clock.advance(10_000);
    expect(second.isHeld()).toBe(true);
    expect(store.calls.filter((call) => call.operation === 'renew' && call.atMs < 1_000 + 1_400)).toEqual([]);
  });

  it('The watchdog renews a short lease in time, even if longer ones are granted after it', async () => {
    const { job, clock } = setUp();
    const { in: inJob } = job();
    const short = await inJob(() => lock.acquire('short', { leaseMs: 1_000 }));
    await inJob(() => lock.acquire('long'));
    await clock.advance(5_000);
    expect(short.isHeld()).toBe(true);
  });

  it('The watchdog stops exactly at the last release', async () => {
    const { job, clock, store } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key', { leaseMs: 3_000 }));
    const inner = await inJob(() => lock.acquire('key', { leaseMs: 3_000 }));
    await outer.release();
    await clock.advance(1_000);
    expect(store.count('renew')).toBe(1);
    await inner.release();
    await clock.advance(60_000);
    expect(store.count('renew')).toBe(1);
    expect(clock.timerCount).toBe(0);
  });
});

describe('A renewal that fails', () => {
  it('A failed renewal is tried again, and the hold stays if one of the tries gets through', async () => {
    const { job, store, clock, events } = setUp();
    const [storeErrors, lost] = [events('storeError'), events('lost')];
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    store.next('renew', down, { kind: 'lostCall' }, down);
    await clock.advance(20_000);
    expect(hold.isHeld()).toBe(true);
    expect(storeErrors.map((event) => event.operation)).toEqual(['renew', 'renew', 'renew']);
    expect(storeErrors[0]).toMatchObject({ key: 'key', error: expect.any(LockStoreError) });
    expect(lost).toEqual([]);
  });

  it('A failed renewal is tried again after a pause with jitter, so that processes do not retry together', async () => {
    const { job, store, clock } = setUp();
    const startMs = clock.now().monoMs;
    await job().in(() => lock.acquire('key', { leaseMs: 30_000 }));
    store.next('renew', down, down);
    clock.nextJitter = 0;
    await clock.advance(10_000);
    clock.nextJitter = 0.75;
    await clock.advance(3_000);
    expect(times(store.calls, 'renew', startMs)).toEqual([9_900, 10_400, 11_650]);
  });

  it.each([
    ['rejects', down],
    ['never answers', { kind: 'lostCall' }],
    ['executes it and never answers', { kind: 'lostReply' }],
  ] as const)('A failed renewal has at least two tries before the deadline if the store %s', async (_, fault) => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    const startMs = clock.now().monoMs;
    store.always('renew', fault);
    await clock.advance(2_968);
    expect(hold.isHeld()).toBe(false);
    const tries = times(store.calls, 'renew', startMs);
    expect(tries.length).toBeGreaterThanOrEqual(2);
    expect(Math.max(...tries)).toBeLessThan(2_968);
  });

  it('A reply to a renewal counts, however late it is: the hold stays, although each later call is lost', async () => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    store.next('renew', { kind: 'lateReply', ms: 1_500 });
    await clock.advance(1_000);
    store.always('renew', { kind: 'lostCall' });
    await clock.advance(1_600);
    expect(hold.remainingMs()).toBeGreaterThan(1_000);
    await clock.advance(1_000);
    expect(hold.isHeld()).toBe(true);
  });

  it('A late reply to a renewal does not bring a lease back that has ended, not even before its end was noticed', async () => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    // Sent at 990 ms, given up at 1 649 ms, answered at 1 750 ms; the next try is due at 1 869 ms.
    store.next('renew', { kind: 'lateReply', ms: 760 });
    await clock.advance(1_700);
    // The machine slept: no timer was due meanwhile.
    clock.jumpWall(1_300);
    expect(hold.isHeld()).toBe(false);
    await clock.advance(60);
    expect(store.count('renew')).toBe(1);
    expect(hold.isHeld()).toBe(false);
  });

  it('After the late reply to a renewal, the next one is due at a third of the lease', async () => {
    const { job, store, clock } = setUp();
    const startMs = clock.now().monoMs;
    await job().in(() => lock.acquire('key', { leaseMs: 30_000 }));
    store.next('renew', { kind: 'lateReply', ms: 2_500 });
    await clock.advance(9_900 + 2_500 + 100);
    const sent = times(store.calls, 'renew', startMs);
    // It had not come in `storeTimeoutMs`.
    expect(sent[0]).toBe(9_900);
    await clock.advance(8_000);
    expect(times(store.calls, 'renew', startMs)).toEqual(sent);
  });

  it('A renewal of a long lease is given up after `storeTimeoutMs`, and tried again a second later', async () => {
    const { job, store, clock } = setUp();
    const startMs = clock.now().monoMs;
    await job().in(() => lock.acquire('key', { leaseMs: 30_000 }));
    store.next('renew', { kind: 'lostCall' });
    await clock.advance(13_000);
    expect(times(store.calls, 'renew', startMs)).toEqual([9_900, 12_900]);
  });

  it('A renewal is not sent a second time while it is on its way, whatever else is renewed meanwhile', async () => {
    const { job, store, clock } = setUp();
    const { in: inJob } = job();
    await inJob(() => lock.acquire('long', { leaseMs: 6_000 }));
    const open = store.gate('renew');
    await clock.advance(1_980);
    expect(store.count('renew')).toBe(1);
    await inJob(() => lock.acquire('short', { leaseMs: 600 }));
    await clock.advance(1_000);
    const [first, ...later] = store.calls.filter(({ operation }) => operation === 'renew');
    expect(later.length).toBeGreaterThanOrEqual(4);
    expect(later.map(({ holdId }) => holdId)).not.toContain(first?.holdId);
    open();
  });

  it('A renewal that fails until the local deadline makes the hold lost: signal, event, and a release all the same', async () => {
    const { job, store, clock, events } = setUp();
    const lost = events('lost');
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    const { signal } = hold;
    const aborted = jest.fn();
    signal.addEventListener('abort', aborted);
    store.always('renew', { kind: 'lostReply' });
    await clock.advance(2_967);
    expect([hold.isHeld(), signal.aborted, store.count('release')]).toEqual([true, false, 0]);
    await clock.advance(1);
    expect([hold.isHeld(), signal.aborted, store.count('release')]).toEqual([false, true, 1]);
    expect(aborted).toHaveBeenCalledTimes(1);
    expect(signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', key: 'key', fence: hold.fence });
    expect(lost).toMatchObject([{ key: 'key', traceId: hold.traceId, branch: hold.branch, error: signal.reason }]);
    // The store had renewed it all the same; the release has freed it.
    expect(await store.remains()).toEqual([]);
    expect(() => hold.assertHeld()).toThrow(signal.reason);
  });

  it('A renewal without a reply is in doubt whatever an earlier one returns: the hold is released once it is lost', async () => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    store.next('renew', { kind: 'lateReply', ms: 10 }, { kind: 'lostReply' });
    const extended = [outcomeOf(hold.extend(2_000)), outcomeOf(hold.extend(60_000))];
    await clock.advance(2_000);
    expect(extended.map(({ state }) => state)).toEqual(['fulfilled', 'rejected']);
    expect(hold.isHeld()).toBe(false);
    expect(await store.remains()).toEqual([]);
  });

  it('A renewal with a definite no makes the hold lost at once', async () => {
    const { job, store, clock, events } = setUp();
    const lost = events('lost');
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    await store.forget();
    await clock.advance(990);
    expect(hold.isHeld()).toBe(false);
    expect(hold.signal.reason).toBeInstanceOf(LockLostError);
    expect(lost).toHaveLength(1);
    await clock.advance(5_000);
    expect([store.count('renew'), store.count('release')]).toEqual([1, 1]);
  });

  it('A renewal with another fence is a no', async () => {
    const { job, store, clock, sibling } = setUp();
    const hold = await job('trace').in(() => lock.acquire('key', { leaseMs: 3_000 }));
    await clock.advance(1);
    await store.forget();
    const other = await sibling()
      .job('trace')
      .in(() => lock.acquire('key', { leaseMs: 3_000 }));
    await clock.advance(990);
    expect(other.fence).toBeGreaterThan(hold.fence);
    expect([hold.isHeld(), other.isHeld()]).toEqual([false, true]);
  });

  it('A renewal has no effect once the release has begun', async () => {
    const { job, store, clock, events } = setUp();
    const [renewed, lost] = [events('renewed'), events('lost')];
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    const open = store.gate('renew');
    await clock.advance(990);
    const openRelease = store.gate('release');
    const release = hold.release();
    open();
    await clock.settle();
    expect([renewed, lost]).toEqual([[], []]);
    expect(hold.isHeld()).toBe(false);
    openRelease();
    await release;
    await clock.advance(10_000);
    expect(store.count('renew')).toBe(1);
  });

  it('A renewal that is refused after the release has begun makes nothing lost', async () => {
    const { job, store, clock, events } = setUp();
    const lost = events('lost');
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    store.next('renew', { kind: 'lateCall', ms: 500 });
    await clock.advance(990);
    await hold.release();
    await clock.advance(1_000);
    expect(lost).toEqual([]);
  });
});

it('A renewal that gets its reply after the release and the end of its Locks starts no timer', async () => {
  const { job, store, clock, locks } = setUp();
  const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
  const open = store.gate('renew');
  await clock.advance(990);
  await hold.release();
  await locks.close();
  open();
  await clock.settle();
  expect(clock.timerCount).toBe(0);
});

describe('maxHoldMs', () => {
  it('maxHoldMs is sent to the store as a whole number of milliseconds, whatever the clock shows', async () => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000, maxHoldMs: 4_000 }));
    clock.skip(0.5);
    await hold.extend(10_000);
    expect(store.calls.at(-1)).toMatchObject({ operation: 'renew', terms: { leaseMs: 4_000 } });
  });

  it('maxHoldMs stops the renewal at its end, and the hold is lost then', async () => {
    const { job, store, clock, events } = setUp();
    const lost = events('lost');
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 1_000, maxHoldMs: 5_000 }));
    await clock.advance(4_900);
    expect(hold.isHeld()).toBe(true);
    const renewals = store.count('renew');
    await clock.advance(100);
    expect(hold.isHeld()).toBe(false);
    expect(lost[0]?.error.message).toContain('maxHoldMs');
    await clock.advance(10_000);
    expect(store.count('renew')).toBe(renewals);
  });

  it('maxHoldMs lets no renewal reach beyond it in the store', async () => {
    const { job, store, clock } = setUp();
    const startMs = clock.now().monoMs;
    await job().in(() => lock.acquire('key', { leaseMs: 1_000, maxHoldMs: 5_000 }));
    await clock.advance(4_990);
    for (const { terms, atMs } of store.calls.filter((call) => call.operation === 'renew')) {
      expect(atMs - startMs + (terms as { leaseMs: number }).leaseMs).toBeLessThanOrEqual(5_001);
    }
  });

  it('maxHoldMs ends a hold whose lease is as long as it, and the error names it, also after an `extend` by less', async () => {
    const { job, store, clock, events } = setUp();
    const lost = events('lost');
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 1_000, maxHoldMs: 1_000 }));
    await hold.extend(100);
    await clock.advance(1_000);
    expect(hold.isHeld()).toBe(false);
    expect(lost[0]?.error.message).toContain('maxHoldMs');
    expect(store.count('renew')).toBe(1);
  });

  it('maxHoldMs ends an `extend` to just that: nothing renews it from then on', async () => {
    const { job, store, clock } = setUp();
    await job().in(async () => (await lock.acquire('key', { leaseMs: 500, maxHoldMs: 1_000 })).extend(1_000));
    await clock.advance(1_000);
    // And the one that was due before.
    expect(store.count('renew')).toBe(2);
  });

  it('maxHoldMs does not end a claim that was never renewed', async () => {
    const { job, store, clock, events } = setUp({ claimMs: 300 });
    const lost = events('lost');
    const first = await job().in(() => lock.acquire('key'));
    const second = job().in(() => lock.acquire('key', { leaseMs: 1_000, maxHoldMs: 1_000 }));
    await clock.settle();
    await first.release();
    store.always('renew', down);
    await second;
    await clock.advance(300);
    expect(lost[0]?.error.message).toContain('its lease expired before it could be renewed');
  });
});
