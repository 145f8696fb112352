import {
  createLocks,
  getLock,
  LockStoreError,
  LockTimeoutError,
  lock,
  MemoryStore,
  runInTrace,
} from '../../../src/core/index.ts';
import type { Fault, StoreOperation } from '../../support/stores/fake-store.ts';
import { coreTests, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const down = { kind: 'rejected', error: new Error('ECONNREFUSED') } as const;

/** How a call fails whose store does not execute it. */
const refusals: [string, Fault][] = [
  ['rejects', down],
  ['throws', { kind: 'thrown', error: new Error('not connected') }],
  ['never settles', { kind: 'lostCall' }],
];

describe('A store that is down', () => {
  const isWithinBound = (setup: Setup, waitMs: number) => Math.max(waitMs, setup.locks.settings.storeTimeoutMs) + 100;

  it.each<[string, Fault]>([
    ...refusals,
    ['executes and rejects', { kind: 'rejectedReply', error: new Error('ECONNRESET') }],
    ['executes and never answers', { kind: 'lostReply' }],
  ])('A store that is down and %s is a LockStoreError in time, for a wait and for a try', async (_, fault) => {
    const setup = setUp();
    setup.store.always('acquire', fault);
    const wait = await queued(setup, { waitMs: 1_000 });
    const attempt = outcomeOf(setup.job().in(() => lock.tryAcquire('key')));
    await setup.clock.advance(isWithinBound(setup, 1_000));
    for (const outcome of [wait, attempt]) {
      expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown', status: 503 });
    }
  });

  describe.each<[string, Fault]>([
    ['rejects', down],
    ['never replies', { kind: 'lostCall' }],
  ])('and %s', (_, fault) => {
    it.each<[string, StoreOperation, (setup: Setup) => Promise<unknown>]>([
      ['an acquire', 'acquire', () => lock.acquire('key')],
      ['a try', 'acquire', () => lock.tryAcquire('key')],
      ['a batch', 'acquire', () => lock.acquireAll(['key'])],
      ['an `extend`', 'renew', async () => (await lock.acquire('key', { renew: false })).extend(60_000)],
      ['a `release`', 'release', async () => (await lock.acquire('key')).release()],
      ['an `inspect`', 'inspect', () => getLock('key').inspect()],
      ['an `isLocked`', 'inspect', () => getLock('key').isLocked()],
      ['a `forceRelease` that looks', 'inspect', () => getLock('key').forceRelease()],
      ['a `forceRelease`', 'forceRelease', () => lock.acquire('key').then(() => getLock('key').forceRelease())],
      ['a `list`', 'list', ({ locks }) => locks.list()],
    ])(
      'A store that is down fails %s in time, with an error that has its key, and its event reports it once',
      async (_, operation, call) => {
        const setup = setUp();
        const events = setup.events('storeError');
        setup.store.always(operation, fault);
        const outcome = outcomeOf(setup.job().in(() => call(setup)));
        await setup.clock.advance(2_000);
        expect(outcome.state).toBe('rejected');
        // A release is tried again until the lease has expired.
        await setup.clock.advance(30_000);
        const key = operation === 'list' ? {} : { key: 'key' };
        const error = { code: 'ERR_LOCK_STORE', status: 503, outcome: 'unknown', ...key };
        expect(outcome.error).toMatchObject('error' in fault ? { ...error, cause: fault.error } : error);
        expect(events).toMatchObject([{ operation, error: 'error' in fault ? { cause: fault.error } : error }]);
      },
    );
  });

  it.each(refusals)(
    'A store that is down in its stream too, where subscribing %s, is a LockStoreError after `storeTimeoutMs`, however long the wait',
    async (_, fault) => {
      const setup = setUp();
      setup.store.always('subscribe', fault);
      setup.store.always('acquire', { kind: 'lostCall' });
      const outcome = await queued(setup, { waitMs: 60_000 });
      await setup.clock.advance(setup.locks.settings.storeTimeoutMs + 100);
      expect(outcome.error).toBeInstanceOf(LockStoreError);
    },
  );

  it.each(refusals)(
    'A store that is down in its stream alone, where subscribing %s, leaves waiters to their polls',
    async (_, fault) => {
      const setup = setUp();
      const other = setup.sibling();
      const first = await taken(other);
      setup.store.next('subscribe', fault);
      const waiter = await queued(setup);
      await setup.clock.advance(1_500);
      await first.release();
      await setup.clock.advance(3_500);
      expect(waiter.value?.isHeld()).toBe(true);
    },
  );

  it('A stream that refuses to subscribe is reported, and tried again after `pollMs`', async () => {
    const setup = setUp();
    const events = setup.events('storeError');
    setup.store.next('subscribe', down);
    await queued(setup);
    expect(events).toEqual([{ operation: 'subscribe', error: down.error }]);
    await setup.clock.advance(999);
    await queued(setup);
    expect(setup.store.count('subscribe')).toBe(1);
    await setup.clock.advance(1);
    await queued(setup);
    expect(setup.store.count('subscribe')).toBe(2);
  });

  it('A stream that subscribes slowly delays later acquires no longer than the first', async () => {
    const setup = setUp();
    setup.store.next('subscribe', { kind: 'lostCall' });
    const first = await queued(setup);
    await setup.clock.advance(900);
    const second = outcomeOf(setup.job().in(() => lock.acquire('another')));
    expect([first.state, setup.store.count('acquire')]).toEqual(['pending', 0]);
    await setup.clock.advance(110);
    expect([first.state, second.state]).toEqual(['fulfilled', 'fulfilled']);
  });

  it('A store that is down while an acquire waits is a LockStoreError at the end of the wait, not a busy lock', async () => {
    const setup = setUp();
    await taken(setup, { leaseMs: 60_000 });
    const waiter = await queued(setup, { waitMs: 5_000 });
    setup.store.always('acquire', { kind: 'lostCall' });
    await setup.clock.advance(5_000);
    expect(waiter.error).toBeInstanceOf(LockStoreError);
  });

  it('A store that is down for one poll does not fail an acquire that was queued since: the lock is busy', async () => {
    const setup = setUp();
    await taken(setup, { leaseMs: 60_000 });
    await queued(setup, { waitMs: 60_000 });
    setup.store.next('acquire', down);
    const storeErrors = setup.events('storeError');
    await setup.clock.advance(1_250);
    expect(storeErrors).toHaveLength(1);
    const waiter = await queued(setup, { waitMs: 500 });
    await setup.clock.advance(500);
    expect(waiter.error).toBeInstanceOf(LockTimeoutError);
  });

  it('A store that is down for a while during the wait costs nothing but time', async () => {
    const setup = setUp({ waitMs: 60_000 });
    const other = setup.sibling();
    const first = await taken(other);
    const waiter = await queued(setup);
    setup.store.always('acquire', { kind: 'lostCall' });
    await setup.clock.advance(3_000);
    setup.store.heal();
    await first.release();
    await setup.clock.advance(2_500);
    expect(waiter.value?.isHeld()).toBe(true);
  });
});

describe('A release on a store that is down', () => {
  it.each([
    ['refused', 0],
    ['refused, and from then on never answered', 1_000],
  ])('A release that is %s is a LockStoreError after `storeTimeoutMs`, and is tried again', async (_, silentFromMs) => {
    const setup = setUp();
    const hold = await taken(setup);
    setup.store.always('release', down);
    const release = outcomeOf(hold.release());
    await setup.clock.advance(silentFromMs);
    if (silentFromMs > 0) setup.store.always('release', { kind: 'lostCall' });
    expect(release.state).toBe('pending');
    await setup.clock.advance(setup.locks.settings.storeTimeoutMs - silentFromMs + 100);
    expect(release.error).toBeInstanceOf(LockStoreError);
    setup.store.heal();
    await setup.clock.advance(4_000);
    expect((await setup.store.inspect('key')).holds).toEqual([]);
  });
});

describe('A cancellation on a store that is down', () => {
  it('A cancellation is tried again until it gets a reply', async () => {
    const setup = setUp();
    const first = await taken(setup);
    const gone = await queued(setup, { waitMs: 100 });
    setup.store.always('release', { kind: 'lostCall' });
    await setup.clock.advance(7_000);
    expect(gone.state).toBe('rejected');
    expect(setup.store.count('release')).toBeGreaterThanOrEqual(3);
    setup.store.heal();
    await setup.clock.advance(2_500);
    expect((await setup.store.inspect('key')).waiters).toEqual([]);
    expect(first.isHeld()).toBe(true);
  });

  it('A cancellation is tried again for as long as its place in the queue may last, even if its lease would be shorter', async () => {
    const setup = setUp();
    const first = await taken(setup);
    await queued(setup, { waitMs: 100, leaseMs: 1_000 });
    setup.store.always('release', { kind: 'lostCall' });
    await setup.clock.advance(5_000);
    setup.store.heal();
    await setup.clock.advance(3_000);
    expect((await setup.store.inspect('key')).waiters).toEqual([]);
    expect(first.isHeld()).toBe(true);
  });

  it.each([
    [1_000, 6_000],
    [60_000, 60_000],
  ])(
    'A cancellation or a release is remembered against copies of its acquire, with a lease of %i ms for %i ms',
    async (leaseMs, tombstoneMs) => {
      const { job, store } = setUp();
      await job().in(() => lock.run('key', () => {}, { leaseMs }));
      expect(store.calls.at(-1)).toMatchObject({ operation: 'release', terms: { tombstoneMs } });
    },
  );

  it('A cancellation holds against an acquire that arrives after it', async () => {
    const setup = setUp();
    setup.store.next('acquire', { kind: 'lateCall', ms: 2_500 });
    const outcome = await queued(setup, { waitMs: 500 });
    await setup.clock.advance(2_100);
    expect(outcome.state).toBe('rejected');
    await setup.clock.advance(500);
    expect(setup.store.calls.map((call) => call.operation)).toEqual(['subscribe', 'acquire', 'release']);
    expect(await setup.store.remains()).toEqual([]);
  });
});

it('A store whose promise throws when it is awaited has failed like any other', async () => {
  const store = new MemoryStore();
  const locks = createLocks({ store });
  const foreign = {
    // biome-ignore lint/suspicious/noThenProperty: that is what is tested.
    then(): never {
      throw new Error('not connected');
    },
  } as unknown as Promise<never>;
  await runInTrace(
    async () => {
      const hold = await lock.acquire('held');
      jest.spyOn(store, 'acquire').mockReturnValueOnce(foreign);
      await expect(lock.acquire('key')).rejects.toBeInstanceOf(LockStoreError);
      jest.spyOn(store, 'release').mockReturnValueOnce(foreign);
      await hold.release();
      expect((await store.inspect('held')).holds).toEqual([]);
    },
    { locks },
  );
  await locks.close();
});
