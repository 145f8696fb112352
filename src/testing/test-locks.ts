import { publicCall } from '../core/base/call-site.ts';
import { type Clock, systemClock } from '../core/base/clock.ts';
import type { AcquireOptions, Hold, LockEvents, LockKey, Locks, LocksOptions } from '../core/index.ts';
import { acquire } from '../core/lock/acquire.ts';
import { LockConfigError } from '../core/model/errors/mistakes.ts';
import { lockEventNames } from '../core/model/events.ts';
import { checkedName, readName } from '../core/model/key.ts';
import { acquireRules, checkAcquireOptions } from '../core/model/options.ts';
import { pathOf } from '../core/model/owner.ts';
import { checkOptions, checkValue, oneOf, wholeNumber } from '../core/model/validate.ts';
import { configure, unconfigure } from '../core/runtime/default-locks.ts';
import { buildLocks, runtimeOf } from '../core/runtime/locks.ts';
import { Scope } from '../core/scope/scope.ts';
import { FaultyStore, type StoreFault, type StoreOperation } from './faulty-store.ts';
import { ManualClock, settle } from './manual-clock.ts';

/** The options of `createTestLocks`: those of `createLocks`, without a store. */
export interface TestLocksOptions extends Omit<LocksOptions, 'store'> {
  /** `'real'` (default): time passes by itself. `'manual'`: time stands still until `clock.advance`. */
  readonly clock?: 'real' | 'manual' | undefined;
}

/** The clock of a `TestLocks`. */
export interface TestClock {
  /**
   * Lets `ms` milliseconds pass on the manual clock, with all timers that are due. Rejects with `LockConfigError` if the clock is
   * `'real'`.
   *
   * @example
   * ```ts
   * import { createTestLocks } from 'reenlock/testing';
   *
   * const locks = createTestLocks({ clock: 'manual' });
   * const hold = await locks.holdAs('another-request', 'order:42', { leaseMs: 10_000, renew: false });
   * await locks.clock.advance(10_001);
   * console.assert(!hold.isHeld());
   * ```
   */
  advance(ms: number): Promise<void>;
}

/** The options of `whenWaiting`. */
export interface WhenWaitingOptions extends Pick<AcquireOptions, 'category'> {
  /** How long it waits for the waiters, in milliseconds of real time. Default 4000: less than the timeout of a test. */
  readonly timeoutMs?: number | undefined;
}

/** One event of a `TestLocks`. */
export interface HistoryEntry<E extends keyof LockEvents = keyof LockEvents> {
  readonly event: E;
  /** Milliseconds since the `TestLocks` was created, on its clock. */
  readonly atMs: number;
  readonly details: LockEvents[E];
}

/** A `Locks` in memory, with what a test needs to play other requests, faults and time. */
export interface TestLocks extends Locks {
  readonly clock: TestClock;
  /**
   * Acquires a key for another trace, as another request would. `end` releases the hold if the test does not. Rejects as `lock.acquire`
   * does.
   *
   * @example
   * ```ts
   * import { createTestLocks } from 'reenlock/testing';
   *
   * const locks = createTestLocks();
   * const hold = await locks.holdAs('another-request', 'order:42');
   * // … test what your code does while the order is locked
   * await hold.release();
   * ```
   */
  holdAs(traceId: string, key: LockKey, options?: AcquireOptions): Promise<Hold>;
  /**
   * Resolves when at least `count` acquires (default 1) wait for the key: at once if they wait already. Rejects after `timeoutMs`
   * (default 4000) with an error that names what is locked and waited for instead. This is real time, whatever the `clock` and fake
   * timers of the test say.
   *
   * @example
   * ```ts
   * import { createTestLocks } from 'reenlock/testing';
   *
   * const locks = createTestLocks();
   * const hold = await locks.holdAs('first-request', 'order:42');
   * const second = locks.holdAs('second-request', 'order:42');
   * await locks.whenWaiting('order:42');
   * await hold.release();
   * await second;
   * ```
   */
  whenWaiting(key: LockKey, count?: number, options?: WhenWaitingOptions): Promise<void>;
  /**
   * Takes the key from its holder, as if its lease had expired: the hold is lost. Returns false if no one holds the key.
   *
   * @example
   * ```ts
   * import { createTestLocks } from 'reenlock/testing';
   *
   * const locks = createTestLocks();
   * const hold = await locks.holdAs('a-request', 'order:42');
   * await locks.loseLock('order:42');
   * console.assert(hold.signal.aborted);
   * ```
   */
  loseLock(key: LockKey, options?: Pick<AcquireOptions, 'category'>): Promise<boolean>;
  /**
   * Makes the next store call of this kind fail. Call it again for the calls after that one. Throws `LockConfigError` for an unknown
   * operation or fault.
   *
   * @example
   * ```ts
   * import { createTestLocks } from 'reenlock/testing';
   *
   * const locks = createTestLocks();
   * locks.failNext('acquire', new Error('refused'));
   * await locks.holdAs('a-request', 'order:42').catch((error) => console.log(error.code)); // ERR_LOCK_STORE
   * ```
   */
  failNext(operation: StoreOperation, fault: StoreFault): void;
  /**
   * Removes the faults of `failNext` that have not happened yet.
   *
   * @example
   * ```ts
   * import { createTestLocks } from 'reenlock/testing';
   *
   * const locks = createTestLocks();
   * locks.failNext('renew', 'lost-reply');
   * locks.heal();
   * ```
   */
  heal(): void;
  /**
   * Returns all events since the `TestLocks` was created, or since the last `history({ clear: true })`, in order.
   *
   * @example
   * ```ts
   * import { createTestLocks } from 'reenlock/testing';
   *
   * const locks = createTestLocks();
   * await (await locks.holdAs('a-request', 'order:42')).release();
   * console.log(locks.history().map(({ event }) => event)); // [ 'granted', 'released' ]
   * ```
   */
  history(options?: { readonly clear?: boolean | undefined }): readonly HistoryEntry[];
  /**
   * Ends the test: releases the holds of `holdAs`, and closes the `Locks`. Rejects with an error that names each lock that the tested code
   * still holds or waits for.
   *
   * @example
   * ```ts
   * import { afterEach } from 'vitest';
   * import { configureTestLocks } from 'reenlock/testing';
   *
   * const locks = configureTestLocks();
   * afterEach(() => locks.end());
   * ```
   */
  end(): Promise<void>;
}

/**
 * Creates a `Locks` in memory for a test. Pass it as `{ locks }`. Call `end` after the test. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import { lock, runInTrace } from 'reenlock';
 * import { createTestLocks } from 'reenlock/testing';
 *
 * const locks = createTestLocks();
 * await locks.holdAs('another-request', 'order:42');
 * const hold = await runInTrace(() => lock.tryAcquire('order:42'), { locks });
 * console.assert(hold === null);
 * await locks.end();
 * ```
 */
export function createTestLocks(options: TestLocksOptions = {}): TestLocks {
  const { clock = 'real', ...others } = options;
  checkValue('`clock`', clock, oneOf('real', 'manual'));
  return buildTestLocks(clock === 'manual' ? new ManualClock() : systemClock, others);
}

/**
 * Creates a `Locks` for a test, as `createTestLocks` does, and makes it the default of this process until its `end`. Throws
 * `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import { afterEach, beforeEach } from 'vitest';
 * import { configureTestLocks, type TestLocks } from 'reenlock/testing';
 *
 * let locks: TestLocks;
 * beforeEach(() => void (locks = configureTestLocks()));
 * afterEach(() => locks.end());
 * ```
 */
export function configureTestLocks(options: TestLocksOptions = {}): TestLocks {
  const locks = createTestLocks(options);
  configure(locks);
  return locks;
}

const defaultTimeoutMs = 2_000;
const waitingMs = 4_000;
const waitingRules = { category: acquireRules.category, timeoutMs: wholeNumber(1) };
// biome-ignore lint/style/noRestrictedGlobals: as they are before a test replaces them by fake timers
const realTimers = { start: setTimeout, clear: clearTimeout };
/** Work that is not awaited may release a lock right after the test has its response. */
const settleRounds = 20;
/** Longer than any lease that a test asks for without saying so: releases that met a fault are repeated for that long. */
const closingMs = 60_000;

function buildTestLocks(clock: Clock, options: LocksOptions): TestLocks {
  const store = new FaultyStore(clock, 1.5 * (options.storeTimeoutMs ?? defaultTimeoutMs));
  const locks = buildLocks({ ...options, store }, clock);
  const runtime = runtimeOf(locks);
  const scopes: Scope[] = [];
  const entries: HistoryEntry[] = [];
  const startMs = clock.now().monoMs;
  for (const event of lockEventNames) {
    locks.on(event, (details) => void entries.push({ event, atMs: Math.round(clock.now().monoMs - startMs), details }));
  }

  const test: Omit<TestLocks, keyof Locks> = {
    clock: { advance: (ms) => advance(clock, ms) },
    holdAs: (traceId, key, acquireOptions) =>
      publicCall(() => {
        const checked = checkAcquireOptions(acquireOptions, 'holdAs');
        const scope = new Scope(runtime, traceId, { isAdopted: true });
        scopes.push(scope);
        return acquire(scope.root, checkedName(key, checked.category), checked, 'code');
      }),
    async whenWaiting(key, count = 1, options) {
      checkValue('the number of waiters', count, wholeNumber(1));
      const { category, timeoutMs = waitingMs } = checkOptions(options, waitingRules, 'whenWaiting');
      const name = checkedName(key, category);
      const waiters = async (): Promise<number> => (await store.inside.inspect(name.id)).waiters.length;
      if (await untilWaiting(locks, async () => (await waiters()) >= count, timeoutMs)) return;
      const expected = `Expected ${count} to wait for ${titleOf(name)} within ${timeoutMs} ms, got ${await waiters()}`;
      const all = (await locksOf(store)).join('; ') || 'nothing is locked';
      throw new Error(`${expected} (${all}): hold the key, then call the code that locks it, without await`);
    },
    async loseLock(key, ofKey) {
      const { category } = checkOptions(ofKey, { category: acquireRules.category }, 'loseLock');
      const isLost = await locks.forceRelease(key, { category });
      await settle();
      return isLost;
    },
    failNext: (operation, fault) => store.failNext(operation, fault),
    heal: () => store.heal(),
    history: ({ clear = false } = {}) => (clear ? entries.splice(0) : [...entries]),
    async end() {
      store.heal();
      for (const scope of scopes.splice(0)) scope.end();
      // A release that met a fault is on its way again. A manual clock would have to be advanced for it.
      if (!(clock instanceof ManualClock)) await inRealTime(runtime.releases.idle());
      const left = await leftIn(store);
      const closing = locks.close({ drainMs: 0 });
      if (clock instanceof ManualClock) await clock.advance(closingMs);
      await closing;
      unconfigure(locks);
      if (left.length > 0) {
        const advice = 'await the work that locks, and end a detached hold by `locks.loseLock(key)`';
        throw new Error(`Expected no lock at the end of the test, got ${left.join('; ')}: ${advice}`);
      }
    },
  };
  return Object.assign(locks, test);
}

async function advance(clock: Clock, ms: number): Promise<void> {
  if (clock instanceof ManualClock) return clock.advance(ms);
  throw new LockConfigError("Expected `createTestLocks({ clock: 'manual' })` for `clock.advance`, got the real clock");
}

/** Resolves with whether they waited within `timeoutMs`. Listens before it looks: a waiter may join meanwhile. */
async function untilWaiting(locks: Locks, areWaiting: () => Promise<boolean>, timeoutMs: number): Promise<boolean> {
  let [isLate, look] = [false, (): void => {}];
  const unsubscribe = locks.on('waiting', () => look());
  const timer = realTimers.start(() => {
    isLate = true;
    look();
  }, timeoutMs);
  try {
    while (!isLate) {
      const next = new Promise<void>((resolve) => {
        look = resolve;
      });
      if (await areWaiting()) return true;
      if (!isLate) await next;
    }
    return areWaiting();
  } finally {
    realTimers.clear(timer);
    unsubscribe();
  }
}

/** Resolves when the work has settled, or after the time that a test is given to wait: fake timers may stand still. */
async function inRealTime(work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = realTimers.start(resolve, waitingMs);
  });
  await Promise.race([work, late]);
  realTimers.clear(timer);
}

/** What is still held or waited for, once work that needs no time has settled. */
async function leftIn(store: FaultyStore): Promise<readonly string[]> {
  let left: readonly string[] = [];
  for (let round = 0; round < settleRounds; round++) {
    await settle();
    left = await locksOf(store);
    if (left.length === 0) break;
  }
  return left;
}

/** What is held or waited for, in words. */
async function locksOf(store: FaultyStore): Promise<readonly string[]> {
  const { locks } = await store.inside.list({ idPrefix: '', limit: Number.MAX_SAFE_INTEGER });
  return locks.map(({ id, holds, waiters }) => {
    const held = holds.map(({ owner }) => `held by ${pathOf(owner) || 'nobody, as it is detached'}`);
    const waited = waiters.map(({ owner }) => `waited for by ${pathOf(owner)}`);
    return `${titleOf(readName(id))} ${[...held, ...waited].join(', ')}`;
  });
}

function titleOf({ key, category }: { readonly key: string; readonly category: string | undefined }): string {
  return category === undefined ? `\`${key}\`` : `\`${key}\` of category \`${category}\``;
}
