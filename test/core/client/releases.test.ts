import { pause } from '../../../src/core/base/clock.ts';
import { Releases } from '../../../src/core/client/releases.ts';
import { LockStoreError, lock } from '../../../src/core/index.ts';
import { runtimeOf } from '../../../src/core/runtime/locks.ts';
import { coreTests, outcomeOf, queued, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const down = { kind: 'rejected', error: new Error('ECONNREFUSED') } as const;

describe('A release that fails', () => {
  it('A failed release is tried again after pauses that double, up to a second', async () => {
    const setup = setUp();
    const { clock, store } = setup;
    const hold = await taken(setup);
    const startMs = clock.now().monoMs;
    store.always('release', down);
    outcomeOf(hold.release());
    await clock.advance(4_000);
    const times = store.calls.filter(({ operation }) => operation === 'release').map(({ atMs }) => atMs - startMs);
    expect(times).toEqual([0, 50, 150, 350, 750, 1_550, 2_550, 3_550]);
  });

  it('A failed release is tried again after pauses with jitter, so that processes do not retry together', async () => {
    const setup = setUp();
    const { clock, store } = setup;
    const hold = await taken(setup);
    const startMs = clock.now().monoMs;
    store.always('release', down);
    clock.nextJitter = 0;
    outcomeOf(hold.release());
    await clock.advance(25);
    clock.nextJitter = 0.75;
    await clock.advance(200);
    const times = store.calls.filter(({ operation }) => operation === 'release').map(({ atMs }) => atMs - startMs);
    expect(times).toEqual([0, 25, 75]);
  });

  it('A failed release rejects with the error of its latest try', async () => {
    const setup = setUp();
    const { clock, store } = setup;
    const hold = await taken(setup);
    store.next('release', { kind: 'rejected', error: new Error('first') });
    store.always('release', down);
    const released = outcomeOf(hold.release());
    await clock.advance(2_000);
    expect(released.error).toMatchObject({ code: 'ERR_LOCK_STORE', cause: down.error });
  });

  it('A failed release rejects as soon as a short lease has expired: nothing can be left', async () => {
    const setup = setUp();
    const { clock, store } = setup;
    const hold = await taken(setup, { leaseMs: 100 });
    store.always('release', down);
    const released = outcomeOf(hold.release());
    await clock.advance(500);
    expect(released.error).toBeInstanceOf(LockStoreError);
    const count = store.count('release');
    await clock.advance(5_000);
    expect(store.count('release')).toBe(count);
  });

  it('A release that fails and then succeeds is a success, whenever it is asked for', async () => {
    const setup = setUp();
    const { clock, store } = setup;
    const job = setup.job();
    const hold = await job.in(() => lock.acquire('key'));
    store.next('release', down);
    await job.end();
    await clock.advance(5_000);
    await expect(hold.release()).resolves.toBeUndefined();
  });

  it('A release is reported once, even if the reply to its first try arrives after that to its second', async () => {
    const setup = setUp();
    const { clock, store } = setup;
    const released = setup.events('released');
    const hold = await taken(setup);
    store.next('release', { kind: 'lateReply', ms: 3_000 });
    outcomeOf(hold.release());
    await clock.advance(5_000);
    expect(store.count('release')).toBe(2);
    expect(released).toHaveLength(1);
  });

  it('A release is tried again once, and reported once, even if its first try rejects after its deadline', async () => {
    const setup = setUp();
    const { clock, store } = setup;
    const errors = setup.events('storeError');
    const hold = await taken(setup);
    jest.spyOn(store, 'release').mockImplementationOnce(async () => {
      await pause(clock, 3_000);
      throw down.error;
    });
    outcomeOf(hold.release());
    await clock.advance(5_000);
    expect(errors).toHaveLength(1);
    expect(store.count('release')).toBe(1);
  });
});

describe('close and releases', () => {
  it('close waits for a release that is on its way', async () => {
    const setup = setUp();
    const { clock, store } = setup;
    const hold = await taken(setup);
    const open = store.gate('release');
    void hold.release();
    const closed = outcomeOf(setup.locks.close());
    await clock.advance(1_000);
    expect(closed.state).toBe('pending');
    open();
    await clock.settle();
    expect(closed.state).toBe('fulfilled');
  });

  it('close does not wait for a release that was given up', async () => {
    const setup = setUp();
    const { clock, store } = setup;
    const hold = await taken(setup, { leaseMs: 100 });
    store.always('release', down);
    outcomeOf(hold.release());
    await clock.advance(1_000);
    const closed = await clock.settled(outcomeOf(setup.locks.close()));
    expect(closed.state).toBe('fulfilled');
    expect(clock.timerCount).toBe(0);
  });
});

describe('A grant to whose release the store never replied', () => {
  it('A repeated message of a released grant releases it once', async () => {
    const setup = setUp({ leaseMs: 1_000 });
    const { clock, store } = setup;
    const first = await taken(setup.sibling());
    const late = await queued(setup, { waitMs: 100 });
    const { holdId } = store.calls.findLast(({ operation }) => operation === 'acquire') as { holdId: string };
    store.always('release', down);
    await clock.advance(20_000);
    expect(late.state).toBe('rejected');
    store.heal();
    const count = store.count('release');
    const grant = { holdId, fence: 1, endMs: 0, isClaim: true };
    for (let n = 0; n < 3; n++) store.broadcast({ kind: 'granted', grant });
    await clock.settle();
    expect(store.count('release')).toBe(count + 1);
    await first.release();
  });

  it('The newest 10,000 released grants are known', async () => {
    const { locks, store } = setUp();
    store.always('release', down);
    const releases = new Releases(runtimeOf(locks));
    const request = (n: number) => ({
      id: 'key',
      holdId: `hold-${n}`,
      owner: 'owner',
      process: 'process',
      claimMs: 1_000,
      mode: 'write' as const,
      priority: 0,
    });
    const lock = { key: 'key', category: undefined };
    for (let n = 0; n <= 10_000; n++) releases.releaseInBackground({ ...lock, request: request(n), leaseMs: 0 });
    await releases.idle();
    expect([0, 1, 10_000].map((n) => releases.releaseLate(`hold-${n}`))).toEqual([false, true, true]);
    await releases.idle();
  });
});
