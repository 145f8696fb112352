import { currentTrace, LockConfigError, LockNotHeldError, lock } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('waitUntil', () => {
  it('waitUntil postpones the release of its hold, renewed, until the promise has settled; other holds are released', async () => {
    const { job, store, clock } = setUp();
    const own = job();
    const kept = await own.in(() => lock.acquire('kept', { leaseMs: 1_000 }));
    const other = await own.in(() => lock.acquire('other'));
    const work = gate();
    kept.waitUntil(work);
    await own.end();
    await clock.advance(5_000);
    expect([kept.isHeld(), other.isHeld()]).toEqual([true, false]);
    work.open();
    await clock.settle();
    expect(kept.isHeld()).toBe(false);
    expect(await store.remains()).toEqual([]);
  });

  it('waitUntil waits for the last of several promises, and the scope goes on meanwhile', async () => {
    const { job, clock } = setUp();
    const own = job();
    const hold = await own.in(() => lock.acquire('key'));
    const finish: (() => void)[] = [];
    for (let n = 0; n < 3; n++) hold.waitUntil(new Promise<void>((resolve) => finish.push(resolve)));
    await own.end();
    for (const one of finish) {
      await clock.settle();
      expect(hold.isHeld()).toBe(true);
      expect(own.in(() => currentTrace())?.hasEnded).toBe(false);
      one();
    }
    await clock.settle();
    expect(hold.isHeld()).toBe(false);
    expect(own.in(() => currentTrace())?.hasEnded).toBe(true);
  });

  it('waitUntil throws if it is called too late, and takes the promise all the same', async () => {
    const setup = setUp();
    const warnings = setup.events('warning');
    const own = setup.job();
    const hold = await own.in(() => lock.acquire('key'));
    await hold.release();
    expect(() => hold.waitUntil(Promise.reject(new Error('work')))).toThrow(LockNotHeldError);
    await own.end();
    expect(() => hold.waitUntil(Promise.resolve())).toThrow(LockNotHeldError);
    await setup.clock.settle();
    expect(warnings).toEqual([expect.objectContaining({ code: 'LOCK_WAIT_UNTIL', cause: new Error('work') })]);
    expect(await setup.store.remains()).toEqual([]);
  });

  it.each([
    [undefined, '`undefined` (undefined)'],
    [async () => {}, 'a value of type function'],
    [5, '`5` (number)'],
  ])('waitUntil refuses %p: the work would go on without the lock', async (value, got) => {
    const { job } = setUp();
    const work = value as unknown as Promise<void>;
    const refusal = new LockConfigError(`Expected what waitUntil is given to be a promise, got ${got}`);
    await job().in(async () => {
      const hold = await lock.acquire('key');
      const batch = await lock.acquireAll(['other']);
      expect(() => hold.waitUntil(work)).toThrow(refusal);
      expect(() => batch.waitUntil(work)).toThrow(refusal);
    });
  });

  it('waitUntil turns a rejection into a warning event, and releases', async () => {
    const { job, clock, events } = setUp();
    const warnings = events('warning');
    const own = job();
    const hold = await own.in(() => lock.acquire('key'));
    const cause = new Error('mail server');
    hold.waitUntil(Promise.reject(cause));
    await own.end();
    await clock.settle();
    expect(warnings).toEqual([{ code: 'LOCK_WAIT_UNTIL', message: expect.any(String), cause }]);
    expect(hold.isHeld()).toBe(false);
  });

  it('waitUntil postpones nothing if its promise has settled before the end', async () => {
    const { job, clock } = setUp();
    const own = job();
    const hold = await own.in(() => lock.acquire('key'));
    hold.waitUntil(Promise.resolve());
    await clock.settle();
    expect(hold.isHeld()).toBe(true);
    await own.end();
    expect(hold.isHeld()).toBe(false);
  });

  it('waitUntil of a hold that is released by hand does not delay the end of the scope', async () => {
    const { job, clock } = setUp();
    const own = job();
    const hold = await own.in(() => lock.acquire('key'));
    const work = gate();
    hold.waitUntil(work);
    await hold.release();
    await own.end();
    work.open();
    await clock.settle();
    expect(own.in(() => currentTrace())?.hasEnded).toBe(true);
  });
});
