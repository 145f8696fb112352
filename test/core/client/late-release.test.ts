import { LockLostError, lock } from '../../../src/core/index.ts';
import { coreTests } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('The release of a hold whose lease had ended', () => {
  const fixed = { leaseMs: 1_000, renew: false } as const;

  it('A late release succeeds if nobody has had the key since', async () => {
    const { job, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    await clock.advance(1_000);
    expect(hold.signal.aborted).toBe(true);
    await hold.release();
  });

  it('A late release succeeds, too, if the lease was extended before', async () => {
    const { job, clock, store } = setUp();
    const hold = await job().in(() => lock.acquire('key', fixed));
    await hold.extend(2_000);
    await clock.advance(2_000);
    expect([hold.signal.aborted, store.count('release')]).toEqual([true, 0]);
    await hold.release();
  });

  it('A late release rejects as lost if another owner has had the key since, even if nobody has it now', async () => {
    const { job, sibling, clock, events } = setUp();
    const lost = events('lost');
    const hold = await job().in(() => lock.acquire('key', fixed));
    await clock.advance(1_000);
    await sibling()
      .job('thief')
      .in(() => lock.run('key', () => {}));
    const { reason } = hold.signal;
    expect(reason).toBeInstanceOf(LockLostError);
    await expect(hold.release()).rejects.toBe(reason);
    // That it ended was told before.
    expect(lost).toHaveLength(1);
  });

  it('A late release also rejects as lost if the hold was released when it was lost, and does not call the store', async () => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 1_000 }));
    store.always('renew', { kind: 'lostCall' });
    await clock.advance(1_000);
    expect(hold.signal.aborted).toBe(true);
    expect(store.count('release')).toBe(1);
    await expect(hold.release()).rejects.toThrow(LockLostError);
    expect(store.count('release')).toBe(1);
  });
});
