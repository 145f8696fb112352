import { type BatchHold, getLock, type Hold, LockLostError, lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('force release', () => {
  it('takes the key from its holder, and the holder is told', async () => {
    const { job, clock, store, events, sibling } = setUp();
    const lost = events('lost');
    const hold = await job().in(() => lock.acquire('key'));
    const { signal } = hold;
    // Needs no scope of the holder's, nor its process.
    expect(
      await sibling()
        .job()
        .in(() => getLock('key').forceRelease()),
    ).toBe(true);
    await clock.settle();
    expect([hold.isHeld(), signal.aborted]).toEqual([false, true]);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(lost).toHaveLength(1);
    expect(await store.remains()).toEqual([]);
  });

  it.each<[string, () => Promise<Hold | BatchHold | null>]>([
    ['a try', () => lock.tryAcquire('key')],
    ['a batch', () => lock.acquireAll(['key', 'other'])],
    ['an acquire that does not wait', () => lock.acquire('key', { waitMs: 0 })],
  ])('is told at once to the holder by %s, in whose process nobody ever waited', async (_, acquire) => {
    const { job, clock, sibling } = setUp();
    const hold = await job().in(acquire);
    await clock.settle();
    await sibling()
      .job()
      .in(() => getLock('key').forceRelease());
    await clock.settle();
    expect(hold?.isHeld()).toBe(false);
  });

  it.each([
    ['', {}],
    [', with a fixed lease', { renew: false }],
  ])('is told to the holder though that message overtakes the grant%s', async (_, options) => {
    const { job, clock, store, sibling } = setUp();
    await job().in(() => lock.run('other', () => undefined));
    const open = store.gate('acquire');
    const held = outcomeOf(job().in(() => lock.acquire('key', options)));
    await clock.settle();
    await sibling()
      .job()
      .in(() => getLock('key').forceRelease());
    await clock.settle();
    open();
    await clock.settle();
    expect(held.value?.isHeld()).toBe(false);
    expect(held.value?.signal.reason).toBeInstanceOf(LockLostError);
  });

  it.each([
    [999, false],
    [1_000, true],
  ])(
    'that overtook the grant is remembered among the newest thousand: behind %i others, held: %p',
    async (others, isHeld) => {
      const { job, clock, store, sibling } = setUp();
      await job().in(() => lock.run('other', () => undefined));
      const open = store.gate('acquire');
      const held = outcomeOf(job().in(() => lock.acquire('key')));
      await clock.settle();
      await sibling()
        .job()
        .in(() => getLock('key').forceRelease());
      for (let n = 0; n < others; n++) store.broadcast({ kind: 'lost', holdId: `elsewhere-${n}` });
      open();
      await clock.settle();
      expect(held.value?.isHeld()).toBe(isHeld);
    },
  );

  it('hands the key to the next waiter', async () => {
    const { job, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key'));
    const waiter = outcomeOf(job().in(() => lock.acquire('key')));
    await clock.settle();
    await job().in(() => getLock('key').forceRelease());
    await clock.settle();
    expect([hold.isHeld(), waiter.value?.isHeld()]).toEqual([false, true]);
    expect(waiter.value?.fence).toBeGreaterThan(hold.fence);
  });

  it('of a free key answers false', async () => {
    const { job } = setUp();
    expect(await job().in(() => getLock('key').forceRelease())).toBe(false);
  });

  it('does nothing when the key had changed hands since it looked', async () => {
    const { job, store, clock } = setUp();
    const first = await job().in(() => lock.acquire('key'));
    const open = store.gate('inspect');
    const forced = outcomeOf(job().in(() => getLock('key').forceRelease()));
    await clock.settle();
    await first.release();
    const second = await job().in(() => lock.acquire('key'));
    open();
    await clock.settle();
    expect(forced.value).toBe(false);
    expect(second.isHeld()).toBe(true);
  });

  it.each(['inspect', 'forceRelease'] as const)(
    'is a LockStoreError in time where the store never answers to %s',
    async (operation) => {
      const { job, store, clock } = setUp();
      await job().in(() => lock.acquire('key'));
      store.always(operation, { kind: 'lostCall' });
      const forced = outcomeOf(job().in(() => getLock('key').forceRelease()));
      await clock.advance(2_100);
      expect(forced.error).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    },
  );
});

describe('inspect', () => {
  it('tells of nobody who has waited for less than nothing, though the store’s clock was set back', async () => {
    const { job, clock, store } = setUp();
    await job().in(() => lock.acquire('key'));
    outcomeOf(job().in(() => lock.acquire('key')));
    await clock.settle();
    const inspect = store.inspect.bind(store);
    store.inspect = async (id) => {
      const reply = await inspect(id);
      return { ...reply, nowMs: reply.nowMs - 86_400_000 };
    };
    const { waiters } = await job().in(() => getLock('key').inspect());
    expect(waiters).toMatchObject([{ waitedMs: 0 }]);
  });

  it.each([
    ['never answers', { kind: 'lostCall' }],
    ['rejects', { kind: 'rejected', error: new Error('down') }],
  ] as const)('is a LockStoreError in time where the store %s', async (_, fault) => {
    const { job, store, clock } = setUp();
    store.always('inspect', fault);
    for (const call of [() => getLock('key').inspect(), () => getLock('key').isLocked()]) {
      const outcome = outcomeOf(job().in<Promise<unknown>>(call));
      await clock.advance(2_100);
      expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_STORE', status: 503 });
    }
  });
});
