import { lock } from '../../../src/core/index.ts';
import { coreTests, queued, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('locks.stats', () => {
  it('locks.stats counts nothing while nothing is held', () => {
    const none = { holds: 0, waiters: 0, oldestHoldMs: 0, oldestWaitMs: 0 };
    expect(setUp().locks.stats()).toEqual({ ...none, byCategory: new Map(), otherCategories: undefined });
  });

  it('locks.stats counts holds and waiters, with the age of the oldest, in all and by category, without a store call', async () => {
    const setup = setUp();
    await taken(setup);
    await setup.clock.advance(100);
    await taken(setup, { category: 'seats' });
    await queued(setup, { category: 'seats' });
    await setup.clock.advance(50);
    await queued(setup, { category: 'seats' });
    const calls = setup.store.calls.length;
    const stats = setup.locks.stats();
    expect(stats).toMatchObject({ holds: 2, waiters: 2, oldestHoldMs: 150, oldestWaitMs: 50 });
    expect([...stats.byCategory]).toEqual([
      ['', { holds: 1, waiters: 0, oldestHoldMs: 150, oldestWaitMs: 0 }],
      ['seats', { holds: 1, waiters: 2, oldestHoldMs: 50, oldestWaitMs: 50 }],
    ]);
    expect(setup.store.calls).toHaveLength(calls);
  });

  it('locks.stats does not count re-entry, which is no separate hold in the store', async () => {
    const setup = setUp();
    const job = setup.job();
    for (let n = 0; n < 3; n++) await job.in(() => lock.acquire('key'));
    expect(setup.locks.stats().holds).toBe(1);
  });

  it('locks.stats names 100 categories, and counts the rest together', async () => {
    const setup = setUp();
    for (let n = 0; n < 103; n++) await taken(setup, { category: `c${n}` });
    const { holds, byCategory, otherCategories } = setup.locks.stats();
    expect([holds, byCategory.size, otherCategories?.holds]).toEqual([103, 100, 3]);
  });
});
