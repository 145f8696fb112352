import type { LockLimitError, LockTimeoutError } from '../../../src/core/index.ts';
import { QueueProgress, retryAfterMs } from '../../../src/core/wait/retry-after.ts';
import { coreTests, queued, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('retryAfterMs', () => {
  it.each([
    ['nobody waits: the rest of the lease', { leaseRemainingMs: 25_000, position: 0 }, 25_000],
    ['who waits before may take as long, each', { leaseRemainingMs: 9_000, position: 3 }, 36_000],
    [
      'where turns were seen, each takes as long as they did',
      { leaseRemainingMs: 25_000, position: 3, turnMs: 200 },
      800,
    ],
    ['the holder has no longer than its lease', { leaseRemainingMs: 100, position: 2, turnMs: 2_000 }, 4_100],
    ['a queue alone makes it a minute', { leaseRemainingMs: 25_000, position: 3 }, 60_000],
    ['also one that moves', { leaseRemainingMs: 25_000, position: 900, turnMs: 200 }, 60_000],
    ['a long lease is believed', { leaseRemainingMs: 200_000, position: 0 }, 200_000],
    ['and not multiplied', { leaseRemainingMs: 200_000, position: 7 }, 200_000],
    ['whole milliseconds', { leaseRemainingMs: 25_000, position: 0, turnMs: 33.2 }, 34],
  ])('%s', (_, refusal, expected) => {
    expect(retryAfterMs(refusal)).toBe(expected);
  });

  describe('at the end of a wait', () => {
    it('Retry-After counts one remaining lease for each waiter ahead', async () => {
      const setup = setUp();
      await taken(setup, { leaseMs: 20_000, renew: false });
      const waiters = [await queued(setup, { waitMs: 5_500 }), await queued(setup, { waitMs: 5_500 })];
      await setup.clock.advance(5_500);
      const [first, second] = waiters.map(({ error }) => (error as LockTimeoutError).retryAfterMs) as [number, number];
      expect(first).toBeGreaterThanOrEqual(14_500);
      expect(first).toBeLessThanOrEqual(16_000);
      expect(second).toBe(2 * first);
    });

    it('Retry-After also follows the turns of other processes, which polls report', async () => {
      const setup = setUp();
      const other = setup.sibling();
      const holder = await taken(other);
      const [first, second] = [await queued(other), await queued(other)];
      await queued(other, { waitMs: 60_000 });
      const last = await queued(setup, { waitMs: 10_000 });
      await setup.clock.advance(2_000);
      await holder.release();
      await setup.clock.advance(2_000);
      await first.value?.release();
      await setup.clock.advance(6_000);
      expect(second.state).toBe('fulfilled');
      // Two turns in ten seconds, the holder's, and that of one who waits.
      expect(last.error).toMatchObject({ retryAfterMs: 10_000 });
    });
  });

  it('Retry-After for a full queue follows the lease and, once the queue moves, its turns', async () => {
    const setup = setUp({ maxWaitersPerKey: 2 });
    const holder = await taken(setup, { leaseMs: 12_000, renew: false });
    const [first] = [await queued(setup), await queued(setup, { waitMs: 60_000 })];
    const refused = await queued(setup);
    expect(refused.error).toMatchObject({
      code: 'ERR_LOCK_LIMIT',
      retryAfterMs: 36_000,
      headers: { 'Retry-After': '36' },
    });
    await setup.clock.advance(3_000);
    await holder.release();
    await setup.clock.settle();
    expect(first.state).toBe('fulfilled');
    await queued(setup);
    // One turn in three seconds; the holder's, and two who wait.
    expect(((await queued(setup)).error as LockLimitError).retryAfterMs).toBe(9_000);
  });

  it('Retry-After of an acquire that does not wait counts the waiters', async () => {
    const setup = setUp();
    await taken(setup, { leaseMs: 12_000, renew: false });
    await queued(setup);
    expect((await queued(setup, { waitMs: 0 })).error).toMatchObject({ retryAfterMs: 24_000 });
  });

  it('Retry-After follows how long recent holds lasted, not the lease of a holder that renews', async () => {
    const setup = setUp();
    for (let n = 0; n < 3; n++) {
      const earlier = await taken(setup);
      await setup.clock.advance(20);
      await earlier.release();
    }
    await taken(setup, { leaseMs: 30_000 });
    for (let n = 0; n < 29; n++) await queued(setup, { waitMs: 60_000 });
    const refused = await queued(setup, { waitMs: 0 });
    expect(refused.error).toMatchObject({ retryAfterMs: 600, headers: { 'Retry-After': '1' } });
  });

  it('Retry-After after a wait in which no turn ended counts a turn as long as that wait', async () => {
    const setup = setUp();
    const earlier = await taken(setup);
    await setup.clock.advance(20);
    await earlier.release();
    await taken(setup);
    const waiters = [await queued(setup, { waitMs: 4_000 }), await queued(setup, { waitMs: 4_000 })];
    await setup.clock.advance(4_000);
    const [first, second] = waiters.map(({ error }) => (error as LockTimeoutError).retryAfterMs) as [number, number];
    expect(first).toBe(4_000);
    expect(second).toBe(8_000);
  });
});

describe('QueueProgress', () => {
  it('A turn ends for all waiters as soon as one of them learns of it', () => {
    const progress = new QueueProgress();
    const [one, two] = [{}, {}];
    progress.join(one, 2);
    progress.join(two, 5);
    progress.updatePosition(one, 0);
    expect([progress.seenBy(one), progress.seenBy(two)]).toEqual([
      { position: 0, endedTurns: 2 },
      { position: 3, endedTurns: 2 },
    ]);
    progress.turnReached(one);
    expect(progress.seenBy(two)).toEqual({ position: 2, endedTurns: 3 });
    const three = {};
    progress.join(three, 4);
    expect(progress.seenBy(three)).toEqual({ position: 4, endedTurns: 0 });
  });

  it('The count of turns does not go back when a waiter is overtaken or loses its place', () => {
    const progress = new QueueProgress();
    const one = {};
    progress.join(one, 2);
    progress.updatePosition(one, 1);
    progress.updatePosition(one, 7);
    expect(progress.seenBy(one)).toEqual({ position: 7, endedTurns: 1 });
    progress.updatePosition(one, 6);
    expect(progress.seenBy(one)).toEqual({ position: 6, endedTurns: 2 });
  });

  it('The count of turns does not go back when the turn of an overtaken waiter begins', () => {
    const progress = new QueueProgress();
    const [one, two] = [{}, {}];
    progress.join(one, 2);
    progress.join(two, 5);
    progress.updatePosition(two, 0);
    expect(progress.seenBy(one)).toEqual({ position: 0, endedTurns: 5 });
    progress.turnReached(one);
    expect(progress.seenBy(two)).toEqual({ position: 0, endedTurns: 5 });
  });

  it('A waiter that never joined has seen no turn', () => {
    const progress = new QueueProgress();
    progress.turnReached({});
    progress.updatePosition({}, 0);
    expect(progress.seenBy({})).toEqual({ position: 0, endedTurns: 0 });
  });
});
