import { getLock, LockConfigError, LockKeyError, LockLostError, lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('A forced release', () => {
  it('A force release takes the key from its holder, and the holder learns of it', async () => {
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

  it.each([
    ['', {}],
    [', with a fixed lease', { renew: false }],
  ])('The holder learns of a force release although that message overtakes the grant%s', async (_, options) => {
    const { job, clock, store, sibling } = setUp();
    await job().in(() => lock.run('other', () => undefined));
    const open = store.gate('acquire');
    const held = await clock.settled(outcomeOf(job().in(() => lock.acquire('key', options))));
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
    'A forced release that overtook the grant is remembered among the newest thousand: behind %i others, held: %p',
    async (others, isHeld) => {
      const { job, clock, store, sibling } = setUp();
      await job().in(() => lock.run('other', () => undefined));
      const open = store.gate('acquire');
      const held = await clock.settled(outcomeOf(job().in(() => lock.acquire('key'))));
      await sibling()
        .job()
        .in(() => getLock('key').forceRelease());
      for (let n = 0; n < others; n++) store.broadcast({ kind: 'lost', holdId: `elsewhere-${n}` });
      open();
      await clock.settle();
      expect(held.value?.isHeld()).toBe(isHeld);
    },
  );

  it('A forced release of a free key returns false', async () => {
    const { job } = setUp();
    expect(await job().in(() => getLock('key').forceRelease())).toBe(false);
  });

  it('A forced release does nothing if the key had changed hands since it looked', async () => {
    const { job, store, clock } = setUp();
    const first = await job().in(() => lock.acquire('key'));
    const open = store.gate('inspect');
    const forced = await clock.settled(outcomeOf(job().in(() => getLock('key').forceRelease())));
    await first.release();
    const second = await job().in(() => lock.acquire('key'));
    open();
    await clock.settle();
    expect(forced.value).toBe(false);
    expect(second.isHeld()).toBe(true);
  });
});

describe('locks.forceRelease', () => {
  it('locks.forceRelease releases the grant whose fence the operator saw, and reports the operator and the reason', async () => {
    const { job, locks, clock, events, sibling } = setUp();
    const elsewhere = sibling();
    const [forced, forcedElsewhere] = [events('forced'), elsewhere.events('forced')];
    const hold = await elsewhere.job().in(() => lock.acquire('key', { category: 'shop' }));
    const { fence } = hold;
    const why = { category: 'shop', fence, by: 'ann', reason: 'ticket 7' };
    expect(await locks.forceRelease('key', why)).toBe(true);
    await clock.settle();
    expect(hold.isHeld()).toBe(false);
    expect(forced).toEqual([{ key: 'key', category: 'shop', fence, by: 'ann', reason: 'ticket 7' }]);
    expect(forcedElsewhere).toEqual([]);
    expect(await job().in(() => lock.tryAcquire('key', { category: 'shop' }))).not.toBeNull();
  });

  it('locks.forceRelease returns false and leaves the key alone if the fence is not the one that the operator saw', async () => {
    const { job, locks, events } = setUp();
    const forced = events('forced');
    const first = await job().in(() => lock.acquire('key'));
    await first.release();
    const second = await job().in(() => lock.acquire('key'));
    expect(await locks.forceRelease('key', { fence: first.fence })).toBe(false);
    expect(await locks.forceRelease('key', { fence: second.fence, category: 'other' })).toBe(false);
    expect(second.isHeld()).toBe(true);
    expect(forced).toEqual([]);
  });

  it('locks.forceRelease takes the key from its present holder if no fence is named', async () => {
    const { job, locks, events } = setUp();
    const forced = events('forced');
    const { fence } = await job().in(() => lock.acquire('key'));
    expect(await locks.forceRelease('key')).toBe(true);
    expect(await locks.forceRelease('key')).toBe(false);
    expect(forced).toEqual([{ key: 'key', category: undefined, fence, by: undefined, reason: undefined }]);
  });

  it('locks.forceRelease takes the hash by which a long key is listed', async () => {
    const { job, locks, clock } = setUp();
    const hold = await job().in(() => lock.acquire('x'.repeat(300), { category: 'shop' }));
    const [listed] = (await locks.list()).locks;
    expect(listed?.key).toMatch(/^%h[0-9a-f]{64}$/);
    expect((await locks.inspect(listed!.key)).holds).toMatchObject([{ traceId: hold.traceId, branch: '' }]);
    expect(await locks.forceRelease(listed!.key, { fence: hold.fence })).toBe(true);
    await clock.settle();
    expect(hold.isHeld()).toBe(false);
  });

  it.each([
    { fence: 0 },
    { fence: 1.5 },
    { by: '' },
    { by: 'x'.repeat(257) },
    { reason: '' },
    { category: '' },
    { why: 1 },
  ])('locks.forceRelease refuses %p with a LockConfigError', async (options) => {
    const { locks } = setUp();
    await expect(locks.forceRelease('key', options as object)).rejects.toBeInstanceOf(LockConfigError);
  });

  it('locks.forceRelease refuses an invalid key with a LockKeyError, as locks.inspect does', async () => {
    const { locks } = setUp();
    await expect(locks.forceRelease('')).rejects.toBeInstanceOf(LockKeyError);
    await expect(locks.inspect('')).rejects.toBeInstanceOf(LockKeyError);
    await expect(locks.inspect('key', { mode: 'read' } as object)).rejects.toBeInstanceOf(LockConfigError);
  });
});

describe('inspect', () => {
  it('inspect reports since when the key is held, and its category, in and outside of scopes', async () => {
    const { job, clock, locks } = setUp();
    const owner = job();
    await owner.in(() => lock.acquire('key', { category: 'shop' }));
    await clock.advance(5_000);
    // Re-entry is not another grant.
    await owner.in(() => lock.acquire('key', { category: 'shop' }));
    await clock.advance(2_000);
    const info = await locks.inspect('key', { category: 'shop' });
    expect(info).toMatchObject({ key: 'key', category: 'shop', holds: [{ heldMs: 7_000 }], waiters: [] });
    expect(await owner.in(() => getLock('key', { category: 'shop' }).inspect())).toEqual(info);
    expect((await locks.inspect('key')).holds).toEqual([]);
  });

  it('inspect reports no negative wait, even if the store’s clock was set back', async () => {
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
});
