import { LockConfigError, lock } from '../../../src/core/index.ts';
import { coreTests } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('The lease of an inner hold', () => {
  it('An inner lease never shortens the outer one', async () => {
    const { job, store, clock } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key', { leaseMs: 20_000 }));
    const before = outer.remainingMs();
    const inner = await inJob(() => lock.acquire('key', { leaseMs: 100 }));
    await inner.extend(100);
    expect(outer.remainingMs()).toBe(before);
    await inner.release();
    expect(outer.remainingMs()).toBe(before);
    await clock.advance(10_000);
    expect(store.calls.filter((call) => call.operation === 'renew').at(-1)?.terms).toMatchObject({ leaseMs: 20_000 });
  });

  it('An inner lease is refused if it is longer than the store allows: it would take the outer hold with it', async () => {
    const short = setUp({ leaseMs: 600 });
    Object.assign(short.store, { capabilities: { ...short.store.capabilities, maxLeaseMs: 1_000 } });
    const { in: inJob } = short.job();
    const outer = await inJob(() => lock.acquire('key'));
    const tooLong = { leaseMs: 1_001 };
    await expect(inJob(() => lock.acquire('key', tooLong))).rejects.toThrow(LockConfigError);
    await expect(inJob(() => lock.acquire('other', tooLong))).rejects.toThrow(LockConfigError);
    await expect(outer.extend(1_001)).rejects.toThrow(LockConfigError);
    await outer.extend(1_000);
    expect(() => short.sibling({ leaseMs: 1_001 })).toThrow(LockConfigError);
    await short.clock.advance(5_000);
    expect(outer.isHeld()).toBe(true);
  });

  it('A longer inner lease extends the outer one', async () => {
    const { job, clock } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key', { leaseMs: 1_000 }));
    await inJob(() => lock.acquire('key', { leaseMs: 20_000 }));
    await clock.advance(1);
    expect(outer.remainingMs()).toBeGreaterThan(19_000);
  });

  it.each([
    ['direct', false],
    ['handed over', true],
  ])(
    'A longer inner lease extends a fixed outer one, once, although nothing renews it: %s',
    async (_, isHandedOver) => {
      const { job, clock, store } = setUp({ claimMs: 900 });
      const before = isHandedOver ? await job().in(() => lock.acquire('key')) : undefined;
      const { in: inJob } = job();
      const acquired = inJob(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
      await clock.settle();
      await before?.release();
      const outer = await acquired;
      // In the middle of the renewal that makes a claim a lease.
      store.next('renew', { kind: 'lateReply', ms: 50 });
      await clock.advance(isHandedOver ? 310 : 0);
      await inJob(() => lock.acquire('key', { leaseMs: 20_000, renew: false }));
      await clock.advance(900);
      expect(outer.remainingMs()).toBeGreaterThan(18_000);
      const renewals = store.count('renew');
      await clock.advance(20_000);
      expect(outer.isHeld()).toBe(false);
      expect(store.count('renew')).toBe(renewals);
    },
  );

  it('A longer inner lease extends a fixed outer one even if the store has to be called twice', async () => {
    const { job, clock, store } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    store.next('renew', { kind: 'rejected', error: new Error('down') });
    await inJob(() => lock.acquire('key', { leaseMs: 20_000, renew: false }));
    await clock.advance(500);
    expect(outer.remainingMs()).toBeGreaterThan(19_000);
    expect(store.count('renew')).toBe(2);
  });

  it('A longer inner lease extends the outer one as soon as the renewal in flight gets its reply', async () => {
    const { job, clock, store } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key', { leaseMs: 3_000 }));
    const open = store.gate('renew');
    await clock.advance(990);
    await inJob(() => lock.acquire('key', { leaseMs: 20_000 }));
    open();
    await clock.advance(1);
    expect(outer.remainingMs()).toBeGreaterThan(19_000);
    expect(store.count('renew')).toBe(2);
  });

  it('A longer inner lease extends a fixed outer one by all of it, even if one with a short lease follows at once', async () => {
    const { job, clock } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key', { leaseMs: 10_000, renew: false }));
    await clock.advance(5_000);
    await inJob(() => lock.acquire('key', { leaseMs: 20_000, renew: false }));
    await inJob(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    await clock.advance(0);
    expect(outer.remainingMs()).toBe(19_798);
  });

  it.each([1_000, 600])(
    'An inner fixed lease of 1 000 ms that ends later extends the outer one: %d ms',
    async (leaseMs) => {
      const { job, clock } = setUp();
      const { in: inJob } = job();
      await inJob(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
      await clock.advance(700);
      const inner = await inJob(() => lock.acquire('key', { leaseMs, renew: false }));
      await clock.advance(1);
      const localMs = leaseMs - leaseMs / 100 - 2;
      expect(inner.remainingMs()).toBeCloseTo(localMs - 1);
      await clock.advance(localMs - 2);
      expect(inner.isHeld()).toBe(true);
      await clock.advance(1);
      expect(inner.isHeld()).toBe(false);
    },
  );

  it('An inner fixed lease calls the store for more only when a third of what it wants has gone', async () => {
    const { job, clock, store } = setUp();
    const { in: inJob } = job();
    await inJob(() => lock.acquire('key', { leaseMs: 3_000, renew: false }));
    await clock.advance(10);
    const inner = await inJob(() => lock.acquire('key', { leaseMs: 3_000, renew: false }));
    await inJob(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    await clock.advance(900);
    expect(store.count('renew')).toBe(0);
    await clock.advance(200);
    expect(store.count('renew')).toBe(1);
    await clock.advance(1_850);
    expect([inner.isHeld(), store.count('renew')]).toEqual([true, 1]);
    await clock.advance(50);
    expect([inner.isHeld(), store.count('renew')]).toEqual([false, 1]);
  });

  it('An inner fixed lease lasts as long as was asked for after the renewed hold is released', async () => {
    const { job, clock } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key', { leaseMs: 3_000 }));
    await clock.advance(900);
    const inner = await inJob(() => lock.acquire('key', { leaseMs: 3_000, renew: false }));
    await outer.release();
    await clock.advance(2_960);
    expect(inner.isHeld()).toBe(true);
    await clock.advance(20);
    expect(inner.isHeld()).toBe(false);
  });

  it('An inner fixed lease never stops the renewal of the outer one, held or released', async () => {
    const { job, clock } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key', { leaseMs: 1_000 }));
    const inner = await inJob(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    await clock.advance(5_000);
    expect([outer.isHeld(), inner.isHeld()]).toEqual([true, true]);
    await inner.release();
    await clock.advance(5_000);
    expect(outer.isHeld()).toBe(true);
  });

  it('A renewing inner lease starts the renewal of a fixed outer one, which ends where the last renewing hold left it', async () => {
    const { job, clock } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    const inner = await inJob(() => lock.acquire('key', { leaseMs: 1_000 }));
    await clock.advance(5_000);
    expect(outer.isHeld()).toBe(true);
    await inner.release();
    await clock.advance(1_000);
    expect(outer.isHeld()).toBe(false);
  });

  it('A renewing inner lease starts the renewal of a fixed outer one at a third of what is left', async () => {
    const { job, store, clock } = setUp();
    const { in: inJob } = job();
    await inJob(() => lock.acquire('key', { leaseMs: 3_000, renew: false }));
    await clock.advance(500);
    await inJob(() => lock.acquire('key', { leaseMs: 3_000 }));
    // 3 000 less 1 % and 2 ms, and less 500.
    await clock.advance(2_468 / 3 - 1);
    expect(store.count('renew')).toBe(0);
    await clock.advance(2);
    expect(store.count('renew')).toBe(1);
  });

  it('An inner lease never moves the limit of maxHoldMs nearer', async () => {
    const { job, clock } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key', { leaseMs: 1_000, maxHoldMs: 20_000 }));
    await inJob(() => lock.acquire('key', { leaseMs: 1_000, maxHoldMs: 2_000 }));
    await clock.advance(19_000);
    expect(outer.isHeld()).toBe(true);
  });

  it('An inner lease never moves the limit of maxHoldMs', async () => {
    const { job, clock } = setUp();
    const { in: inJob } = job();
    const outer = await inJob(() => lock.acquire('key', { leaseMs: 1_000, maxHoldMs: 2_000 }));
    await clock.advance(1_500);
    const inner = await inJob(() => lock.acquire('key', { leaseMs: 1_000, maxHoldMs: 60_000 }));
    await inner.extend(60_000);
    expect(inner.remainingMs()).toBeLessThanOrEqual(500);
    await clock.advance(500);
    expect([outer.isHeld(), inner.isHeld()]).toEqual([false, false]);
  });
});
