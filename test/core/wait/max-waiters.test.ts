import { type Hold, LockLimitError, lock } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, type Outcome, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const states = (outcomes: readonly Outcome<unknown>[]) => outcomes.map(({ state }) => state);
const none = { waiting: 0, held: 0, refused: 0 };

/** One acquire of each key, all of them in one turn, by jobs of their own. */
function burst(setup: Setup, keys: readonly string[]): Outcome<Hold>[] {
  return keys.map((key) => outcomeOf(setup.job().in(() => lock.acquire(key))));
}

function tally(outcomes: readonly Outcome<Hold>[]): typeof none {
  for (const { error } of outcomes) if (error !== undefined) expect(error).toBeInstanceOf(LockLimitError);
  const count = (state: string) => states(outcomes).filter((one) => one === state).length;
  return { waiting: count('pending'), held: count('fulfilled'), refused: count('rejected') };
}

const keys = Array.from({ length: 50 }, (_, index) => `key-${index}`);

describe('maxWaiters', () => {
  it('maxWaiters lets a burst on free keys through, however many are on their way to the store', async () => {
    const setup = setUp({ maxWaiters: 1 });
    const outcomes = burst(setup, keys);
    await setup.clock.settle();
    expect(tally(outcomes)).toEqual({ ...none, held: 50 });
  });

  it('maxWaiters does not count tries: one that waits still may', async () => {
    const setup = setUp({ maxWaiters: 1 });
    await taken(setup);
    const answer = setup.store.gate('acquire');
    const attempt = outcomeOf(setup.job().in(() => lock.tryAcquire('another')));
    const waiter = await queued(setup);
    await setup.clock.settle();
    expect(states([attempt, waiter])).toEqual(['pending', 'pending']);
    answer();
    await attempt.settled;
    expect(setup.store.count('release')).toBe(0);
  });

  it('maxWaiters lets no more of a burst on taken keys wait, over all keys, and the others leave the queues', async () => {
    const setup = setUp({ maxWaiters: 3 });
    const holds: Hold[] = [];
    for (const key of keys) holds.push(await setup.job().in(() => lock.acquire(key)));
    const outcomes = burst(setup, keys);
    await setup.clock.settle();
    expect(tally(outcomes)).toEqual({ ...none, waiting: 3, refused: 47 });
    const inLine = await Promise.all(keys.map(async (key) => (await setup.store.inspect(key)).waiters.length));
    expect(inLine.filter((count) => count > 0)).toEqual([1, 1, 1]);
    await Promise.all(holds.map((hold) => hold.release()));
    await setup.clock.settle();
    expect(tally(outcomes)).toEqual({ ...none, held: 3, refused: 47 });
  });

  it('maxWaiters counts those that wait for another branch of their request, too', async () => {
    const setup = setUp({ maxWaiters: 1 });
    const work = gate();
    const branches: Outcome<unknown>[] = [];
    const around = setup.job().in(() =>
      lock.run('key', () => {
        for (let n = 0; n < 3; n++) branches.push(outcomeOf(lock.run('key', () => work)));
        return work;
      }),
    );
    await setup.clock.settle();
    expect(states(branches)).toEqual(['pending', 'pending', 'rejected']);
    expect(branches[2]?.error).toBeInstanceOf(LockLimitError);
    work.open();
    await around;
    await setup.clock.settle();
    expect(states(branches)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  });
});
