import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import {
  type AcquireOptions,
  type BatchHold,
  getLock,
  LockConfigError,
  LockLostError,
  LockNotHeldError,
  LockStoreError,
  lock,
} from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { pathOf } from '../../support/path-of.ts';
import { coreTests, type Job, outcomeOf, queued, type Setup } from '../../support/stores/set-up.ts';
import { until } from '../../support/until.ts';

const setUp = coreTests();
const refused = { kind: 'rejected', error: new Error('down') } as const;

function batchOf(job: Job, options?: AcquireOptions): Promise<BatchHold> {
  return job.in(() => lock.acquireAll(['a', 'b', 'c'], options));
}

/** A process that has subscribed, so that it is told of what it loses. */
async function listening(): Promise<Setup> {
  const setup = setUp();
  const hold = await setup.job().in(() => lock.acquire('key'));
  await queued(setup, { waitMs: 10 });
  await setup.clock.advance(10);
  await hold.release();
  return setup;
}

/** Takes a key from its holder. */
async function force(setup: Setup, key: string): Promise<void> {
  expect(await setup.job('operator').in(() => getLock(key).forceRelease())).toBe(true);
  await setup.clock.settle();
}

/** A store that has forgotten a key, which somebody else then takes: the release of the hold finds it gone. */
async function changeHands({ store, job }: Setup, ...keys: string[]): Promise<void> {
  await store.forget();
  for (const key of keys) await job('thief').in(() => lock.acquire(key));
}

describe('The hold of a batch', () => {
  it('A batch has its keys for logs, its holds by key, and no fence, which would be that of one key', async () => {
    const { job } = setUp();
    const batch = await batchOf(job('trace'));
    expect(batch.key).toBe('a, b, c');
    expect([...batch.holds.values()].map((each) => pathOf(each))).toEqual(['trace', 'trace', 'trace']);
    for (const { fence } of batch.holds.values()) expect(fence).toBeGreaterThan(0);
    // What compares it must be told of the mistake, by the compiler and when it runs.
    // @ts-expect-error: each key has its own
    expect(() => batch.fence).toThrow(expect.objectContaining({ code: 'ERR_LOCK_CONFIG' }));
  });

  it('A batch is held while all of its holds are', async () => {
    const { job } = setUp();
    const batch = await batchOf(job());
    expect(batch.isHeld()).toBe(true);
    await batch.holds.get('b')!.release();
    expect(batch.isHeld()).toBe(false);
    expect(batch.remainingMs()).toBe(0);
    expect(() => batch.assertHeld()).toThrow(LockNotHeldError);
    expect(batch.holds.get('a')!.isHeld()).toBe(true);
  });

  it('A batch has as much time left as its shortest hold', async () => {
    const { job, clock } = setUp();
    const own = job();
    await own.in(() => lock.acquire('b', { leaseMs: 5_000, renew: false }));
    await clock.advance(1_000);
    const batch = await batchOf(own, { leaseMs: 4_000, renew: false });
    const rest = [...batch.holds.values()].map((hold) => hold.remainingMs());
    expect(batch.remainingMs()).toBe(Math.min(...rest));
    expect(new Set(rest).size).toBeGreaterThan(1);
    expect(() => batch.assertHeld(batch.remainingMs())).not.toThrow();
    expect(() => batch.assertHeld(batch.remainingMs() + 1)).toThrow(LockLostError);
  });

  it('A batch’s signal is aborted when one of its holds is lost, with that hold’s reason', async () => {
    const setup = await listening();
    const batch = await batchOf(setup.job());
    const { signal } = batch;
    expect(signal.aborted).toBe(false);
    await force(setup, 'b');
    expect(signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', key: 'b' });
    expect(signal.reason).toBe(batch.holds.get('b')!.signal.reason);
    expect(batch.signal).toBe(signal);
    expect(() => batch.assertHeld()).toThrow(signal.reason as Error);
    await force(setup, 'a');
    expect(signal.reason).toMatchObject({ key: 'b' });
  });

  it('A batch’s signal is aborted, too, if it is read after the loss', async () => {
    const setup = await listening();
    const batch = await batchOf(setup.job());
    await force(setup, 'b');
    expect(batch.signal.reason).toMatchObject({ code: 'ERR_LOCK_LOST', key: 'b' });
  });

  it.each<[how: string, end: (batch: BatchHold) => PromiseLike<void>]>([
    ['its release', (batch) => batch.release()],
    ['the end of `await using`', (batch) => batch[Symbol.asyncDispose]()],
  ])('A batch’s signal reports no loss after %s', async (_, end) => {
    const setup = await listening();
    const job = setup.job();
    const outer = await job.in(() => lock.acquire('b'));
    const batch = await batchOf(job);
    const { signal } = batch;
    await end(batch);
    await force(setup, 'b');
    expect([outer.signal.aborted, signal.aborted]).toEqual([true, false]);
  });

  it('extend of a batch extends all of its holds', async () => {
    const { job, store } = await listening();
    const batch = await batchOf(job(), { leaseMs: 1_000, renew: false });
    const before = store.count('renew');
    await batch.extend(20_000);
    expect(store.count('renew') - before).toBe(3);
    expect(batch.remainingMs()).toBeGreaterThan(19_000);
  });

  it('extend of a batch extends the others if one is lost, and rejects with the loss', async () => {
    const setup = setUp();
    const batch = await batchOf(setup.job(), { leaseMs: 1_000, renew: false });
    await force(setup, 'b');
    const outcome = outcomeOf(batch.extend(20_000));
    await outcome.settled;
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_LOST', key: 'b' });
    expect(batch.holds.get('c')!.remainingMs()).toBeGreaterThan(19_000);
    await expect(batch.extend(0)).rejects.toThrow(LockConfigError);
  });

  it('A batch outlives its job until the promise of waitUntil has settled, and a rejection is reported once', async () => {
    const setup = setUp();
    const warnings = setup.events('warning');
    const job = setup.job();
    const batch = await batchOf(job);
    let fail: (error: Error) => void = () => {};
    batch.waitUntil(new Promise((_, reject) => (fail = reject)));
    const over = job.end();
    await setup.clock.settle();
    expect(batch.isHeld()).toBe(true);
    fail(new Error('work'));
    await over;
    expect(batch.isHeld()).toBe(false);
    expect(warnings).toEqual([expect.objectContaining({ code: 'LOCK_WAIT_UNTIL', cause: new Error('work') })]);
  });

  it('A batch outlives its job as far as it is held, and reports that a part was released before', async () => {
    const { job, clock } = setUp();
    const own = job();
    const batch = await batchOf(own);
    await own.in(() => lock.release('a'));
    const work = gate();
    expect(() => batch.waitUntil(work)).toThrow(expect.objectContaining({ code: 'ERR_LOCK_NOT_HELD', key: 'a' }));
    await own.end();
    expect(own.in(() => ['a', 'b', 'c'].map((key) => getLock(key).isHeld()))).toEqual([false, true, true]);
    work.open();
    await clock.settle();
    expect(own.in(() => ['a', 'b', 'c'].map((key) => getLock(key).isHeld()))).toEqual([false, false, false]);
  });

  it('A batch is released with its job, newest first', async () => {
    const setup = setUp();
    const released = setup.events('released');
    const job = setup.job();
    const batch = await batchOf(job);
    await job.end();
    await until(() => released.length === 3);
    expect(released.map(({ key }) => key)).toEqual(['c', 'b', 'a']);
    expect(batch.isHeld()).toBe(false);
    expect(() => batch.assertHeld()).toThrow(LockNotHeldError);
  });

  it('A batch releases its holds newest first, and listens to none of them from then on', async () => {
    const setup = setUp();
    const released = setup.events('released');
    const job = setup.job();
    const [before, after] = [await batchOf(job), await batchOf(job)];
    const signals = [...before.holds.values()].map(({ signal }) => signal);
    const listening = () => signals.map((signal) => getEventListeners(signal, 'abort').length);
    expect(before.signal.aborted).toBe(false);
    expect(listening()).toEqual([1, 1, 1]);
    await before.release();
    await after.release();
    expect(after.signal.aborted).toBe(false);
    expect(listening()).toEqual([0, 0, 0]);
    expect(released.splice(0).map(({ key }) => key)).toEqual(['c', 'b', 'a']);
    const ofRun = await job.in(() =>
      lock.runAll(['a', 'b'], async (hold) => [hold.signal, ...[...hold.holds.values()].map(({ signal }) => signal)]),
    );
    expect(ofRun.map((signal) => getEventListeners(signal, 'abort').length)).toEqual([0, 0, 0]);
    expect(released.map(({ key }) => key)).toEqual(['b', 'a']);
  });

  it('A batch’s methods work when they are taken off it', async () => {
    const { job, store } = setUp();
    const { isHeld, remainingMs, assertHeld, extend, waitUntil, release } = await batchOf(job());
    expect([isHeld(), remainingMs() > 0]).toEqual([true, true]);
    assertHeld();
    await extend(1_000);
    waitUntil(Promise.resolve());
    await release();
    expect(await store.remains()).toEqual([]);
  });
});

describe('The release of a batch', () => {
  it('The release of a batch may be repeated, also by the end of a block', async () => {
    const { job, store } = setUp();
    const batch = await batchOf(job());
    await Promise.all([batch.release(), batch.release()]);
    await batch[Symbol.asyncDispose]();
    expect(store.count('release')).toBe(3);
    expect(await store.remains()).toEqual([]);
  });

  it('The release of a batch releases the others if one is refused by the store, and that one is tried again', async () => {
    const { job, store, clock } = setUp({ storeTimeoutMs: 500 });
    const batch = await batchOf(job());
    store.next('release', { kind: 'lostCall' });
    const outcome = await clock.settled(outcomeOf(batch.release()));
    // Newest first.
    expect(await store.remains()).toEqual(['c']);
    await clock.advance(500);
    expect(outcome.error).toBeInstanceOf(LockStoreError);
    expect((outcome.error as Error).cause).not.toBeInstanceOf(AggregateError);
    await clock.advance(1_000);
    expect(await store.remains()).toEqual([]);
  });

  it('The release of a batch rejects with the loss, and names all failures in its cause', async () => {
    const setup = setUp();
    const batch = await batchOf(setup.job());
    await changeHands(setup, 'a', 'b');
    // Newest first: c.
    setup.store.next('release', { kind: 'lostCall' });
    const outcome = outcomeOf(batch.release());
    await setup.clock.advance(2_000);
    expect(outcome.error).toBeInstanceOf(LockLostError);
    const { cause } = outcome.error as { cause: AggregateError };
    expect(cause).toBeInstanceOf(AggregateError);
    const codes = (cause.errors as { code: string; key?: string }[]).map(({ code }) => code);
    expect(codes.sort()).toEqual(['ERR_LOCK_LOST', 'ERR_LOCK_LOST', 'ERR_LOCK_STORE']);
  });

  it('The release of a batch rejects with one LockStoreError, with all failures in its cause, if the store is down', async () => {
    const setup = setUp();
    const batch = await batchOf(setup.job());
    setup.store.always('release', refused);
    const outcome = outcomeOf(batch.release());
    await setup.clock.advance(5_000);
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_STORE', key: 'c', outcome: 'unknown' });
    const { cause } = outcome.error as { cause: AggregateError };
    expect(cause.errors).toHaveLength(3);
    for (const error of cause.errors) expect(error).toBeInstanceOf(LockStoreError);
  });
});

describe('runAll', () => {
  it('runAll holds all keys while its routine runs, and returns its result', async () => {
    const { job, store } = setUp();
    let held: BatchHold | undefined;
    const value = await job().in(() =>
      lock.runAll(['b', 'a', 'b'], async (batch) => {
        held = batch;
        expect([...batch.holds.keys()]).toEqual(['b', 'a']);
        await turn();
        expect(batch.isHeld()).toBe(true);
        return 42;
      }),
    );
    expect(value).toBe(42);
    expect(held!.isHeld()).toBe(false);
    expect(await store.remains()).toEqual([]);
  });

  it('runAll keeps the keys until its routine has settled, even if its job has ended before', async () => {
    const setup = setUp();
    const job = setup.job();
    const work = gate();
    const outcome = await setup.clock.settled(outcomeOf(job.in(() => lock.runAll(['a', 'b'], () => work))));
    const over = job.end();
    await setup.clock.settle();
    expect(await setup.store.remains()).toEqual(['a', 'b']);
    work.open();
    await Promise.all([over, outcome.settled]);
    expect(outcome.state).toBe('fulfilled');
    expect(await setup.store.remains()).toEqual([]);
  });

  it.each([
    ['one key', ['b']],
    ['several keys', ['a', 'b']],
  ])('runAll rejects if %s was lost while the routine succeeded, with its value', async (_, keys) => {
    const setup = setUp();
    const routine = async () => {
      for (const key of keys) await force(setup, key);
      return { id: 7 };
    };
    const outcome = outcomeOf(setup.job().in(() => lock.runAll(['a', 'b', 'c'], routine)));
    await outcome.settled;
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_LOST', value: { id: 7 } });
    expect(keys).toContain((outcome.error as LockLostError).key);
    const { cause } = outcome.error as { cause?: unknown };
    expect(cause instanceof AggregateError ? cause.errors.length : 1).toBe(keys.length);
    expect(await setup.store.remains()).toEqual([]);
  });
});
