import { LockTimeoutError, lock } from '../../../src/core/index.ts';
import type { HoldRequest } from '../../../src/core/model/store.ts';
import { coreTests, outcomeOf, queued, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('Waiters', () => {
  it('Waiters are granted in the order in which they were queued, one at a time', async () => {
    const setup = setUp();
    const order: number[] = [];
    const first = await taken(setup);
    const waiters = Array.from({ length: 20 }, (_, n) =>
      setup.job().in(async () => {
        const hold = await lock.acquire('key');
        order.push(n);
        await setup.clock.settle();
        expect(order).toHaveLength(n + 1);
        await hold.release();
      }),
    );
    await setup.clock.settle();
    await first.release();
    await Promise.all(waiters);
    expect(order).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });

  it('Waiters are not overtaken by a newcomer, not by a try either', async () => {
    const setup = setUp();
    const { store } = setup;
    const first = await taken(setup);
    const waiter = await queued(setup);
    const open = store.gate('release');
    const release = first.release();
    expect(await setup.job().in(() => lock.tryAcquire('key'))).toBeNull();
    const newcomer = await queued(setup);
    open();
    await release;
    await setup.clock.settle();
    expect([waiter.state, newcomer.state]).toEqual(['fulfilled', 'pending']);
    await waiter.value?.release();
    await setup.clock.settle();
    expect(newcomer.state).toBe('fulfilled');
  });

  it('Waiters of one trace are granted together', async () => {
    const setup = setUp();
    const first = await taken(setup);
    const a = outcomeOf(setup.job('trace').in(() => lock.acquire('key')));
    const b = await setup.clock.settled(outcomeOf(setup.job('trace').in(() => lock.acquire('key'))));
    await first.release();
    await setup.clock.settle();
    expect([a.state, b.state]).toEqual(['fulfilled', 'fulfilled']);
    expect(b.value?.fence).toBe(a.value?.fence);
  });
});

it('An acquire is sent in the turn of its call once its process has subscribed', async () => {
  const setup = setUp();
  await taken(setup, {});
  const { in: inJob } = setup.job();
  const acquires = setup.store.count('acquire');
  const acquired = inJob(() => lock.acquire('another'));
  expect(setup.store.count('acquire')).toBe(acquires + 1);
  await acquired;
});

describe('waitMs', () => {
  it('waitMs is longer by default than the lease: a waiter gets the key of a holder whose process died', async () => {
    const setup = setUp();
    const { leaseMs } = setup.locks.settings;
    const dead = {
      id: 'key',
      holdId: 'dead',
      owner: 'dead',
      process: 'dead',
      claimMs: 100,
      mode: 'write',
      priority: 0,
    };
    const terms = { leaseMs, queue: false, maxWaiters: 1, livenessMs: 1_000 };
    await setup.store.acquire(dead as HoldRequest, terms);
    const waiter = await queued(setup);
    await setup.clock.advance(leaseMs + 100);
    expect(waiter.value?.isHeld()).toBe(true);
  });

  it('waitMs 0 returns at once and leaves nothing in the queue', async () => {
    const setup = setUp();
    const hold = await taken(setup);
    const outcome = await queued(setup, { waitMs: 0 });
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', waitedMs: 0 });
    await hold.release();
    expect(await setup.store.remains()).toEqual([]);
    // There was nothing to undo of the try.
    expect(setup.store.count('release')).toBe(1);
  });

  it('waitMs counts from the call on, and not from the reply that queued it', async () => {
    const setup = setUp();
    await taken(setup);
    setup.store.next('acquire', { kind: 'lateReply', ms: 1_500 });
    const outcome = await queued(setup, { waitMs: 5_000 });
    await setup.clock.advance(5_000);
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', waitedMs: 5_000 });
  });

  it('waitMs is how long the wait lasts; the error has that, and when to try again', async () => {
    const setup = setUp();
    const timeouts = setup.events('timeout');
    await taken(setup, { leaseMs: 20_000, renew: false });
    const outcome = await queued(setup, { waitMs: 5_000 });
    await setup.clock.advance(4_999);
    expect(outcome.state).toBe('pending');
    await setup.clock.advance(1);
    expect(outcome.error).toBeInstanceOf(LockTimeoutError);
    const { waitedMs, retryAfterMs } = outcome.error as LockTimeoutError;
    expect(waitedMs).toBe(5_000);
    // What was left of the holder's lease when it was last seen, at the last poll.
    expect(retryAfterMs).toBeGreaterThanOrEqual(15_000);
    expect(retryAfterMs).toBeLessThanOrEqual(16_000);
    expect(timeouts).toMatchObject([{ key: 'key', waitedMs: 5_000 }]);
    await setup.clock.settle();
    expect(setup.store.calls.at(-1)?.operation).toBe('release');
  });

  it('waitMs Infinity waits without an end, and starts no timer that is too long for Node', async () => {
    const setup = setUp({ maxHoldMs: 2 ** 31 - 1 });
    const hold = await taken(setup);
    const started = jest.spyOn(setup.clock, 'after');
    const outcome = await queued(setup, { waitMs: Number.POSITIVE_INFINITY });
    await setup.clock.advance(120_000);
    expect(outcome.state).toBe('pending');
    expect(started.mock.calls.filter(([ms]) => ms > 2 ** 31 - 1)).toEqual([]);
    await hold.release();
    await setup.clock.settle();
    expect(outcome.state).toBe('fulfilled');
  });

  it('waitMs has ended with the grant: no timeout is reported afterwards', async () => {
    const setup = setUp();
    const timeouts = setup.events('timeout');
    const first = await taken(setup);
    const outcome = await queued(setup, { waitMs: 500 });
    await first.release();
    await setup.clock.advance(1_000);
    expect(outcome.state).toBe('fulfilled');
    expect(timeouts).toEqual([]);
  });

  it('waitMs ends although the machine slept, by the wall clock', async () => {
    const setup = setUp();
    await taken(setup, { renew: false });
    const outcome = await queued(setup, { waitMs: 5_000 });
    setup.clock.skip(60_000);
    await setup.clock.advance(0);
    expect(outcome.state).not.toBe('pending');
  });
});
