import { lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('A blocked event loop', () => {
  it('After a blocked event loop, nothing is sent for a lease that has ended: the hold is lost first', async () => {
    const { job, store, clock, events } = setUp();
    const lost = events('lost');
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    clock.skip(3_000);
    expect(hold.isHeld()).toBe(false);
    await clock.advance(0);
    expect(store.count('renew')).toBe(0);
    expect(lost).toHaveLength(1);
    expect(store.count('release')).toBe(0);
    await hold.release();
    expect(store.count('release')).toBe(1);
  });

  it('A machine that slept finds the lost lease by the wall clock', async () => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    clock.jumpWall(3_000);
    await clock.advance(990);
    expect(hold.signal.aborted).toBe(true);
    expect(store.count('renew')).toBe(0);
  });

  it('After a blocked event loop, a lease that is not over is renewed at once', async () => {
    const { job, store, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 3_000 }));
    clock.skip(2_900);
    await clock.advance(0);
    expect(store.count('renew')).toBe(1);
    expect(hold.remainingMs()).toBe(2_968);
  });

  it('After a blocked event loop, a reply that lay ready counts, although its deadline has passed', async () => {
    const { job, store, clock } = setUp();
    // Timers come before input: the call's deadline is looked at first, then the answer is read.
    store.next('acquire', { kind: 'lateReply', ms: 2_400 });
    const acquired = await clock.settled(outcomeOf(job().in(() => lock.acquire('key'))));
    clock.skip(2_500);
    await clock.advance(0);
    expect(acquired.state).toBe('fulfilled');
  });

  describe('A subscription that takes longer than the store has to reply', () => {
    it('An acquire that can wait has the time that the subscription needs', async () => {
      const { job, store, clock } = setUp();
      store.next('subscribe', { kind: 'lateReply', ms: 10 });
      store.next('acquire', { kind: 'lateReply', ms: 100 });
      const acquired = await clock.settled(outcomeOf(job().in(() => lock.acquire('key'))));
      clock.skip(2_500);
      await clock.advance(200);
      expect(acquired.value?.isHeld()).toBe(true);
    });

    it.each<[string, 'skip' | 'jumpWall']>([
      ['one that can not fails', 'skip'],
      ['one whose machine slept for so long fails too', 'jumpWall'],
    ])('%s, and nothing is sent', async (_, passes) => {
      const { job, store, clock } = setUp();
      store.next('subscribe', { kind: 'lateReply', ms: 10 });
      const acquired = await clock.settled(outcomeOf(job().in(() => lock.acquire('key', { waitMs: 1_000 }))));
      clock[passes](2_500);
      await clock.advance(200);
      expect(acquired.error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied', key: 'key' });
      expect(store.calls.map(({ operation }) => operation)).toEqual(['subscribe']);
    });
  });
});
