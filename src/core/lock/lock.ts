import { CallSite, publicCall } from '../base/call-site.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { failAt } from '../model/errors/at-call.ts';
import { LockNotHeldError } from '../model/errors/mistakes.ts';
import { checkedName, checkedNames, type LockKey, type LockName } from '../model/key.ts';
import { acquireRules, checkAcquireOptions } from '../model/options.ts';
import type { AcquireOptions, BatchHold, Hold, LockInfo, TryOptions } from '../model/types.ts';
import { callable, checkValue, type Rule, type Rules } from '../model/validate.ts';
import { defaultLocks } from '../runtime/default-locks.ts';
import { forceReleaseLock, inspectLock } from '../runtime/inspect.ts';
import { runtimeOf } from '../runtime/locks.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { currentBranch, currentScope, ownBranch } from '../scope/context.ts';
import type { Branch } from '../scope/scope.ts';
import { acquire, tryAcquire } from './acquire.ts';
import { Batch } from './batch.ts';
import { ScopedBatch } from './batch-hold.ts';
import type { ScopedHold } from './hold.ts';
import type { Lock, LockFunctions } from './lock-functions.ts';
import { releaseAllKept, releaseKept, runHeld } from './run.ts';
import { whenFree, whenFreeRules } from './when-free.ts';

/**
 * Returns the lock on one key. It acquires nothing yet, and makes no store call. You may keep it in a module or singleton: each
 * call uses the request or job of the code that makes it. `options` are the defaults of its calls. Throws `LockKeyError` for a
 * bad key, and `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import { getLock } from 'reenlock';
 *
 * const stock = getLock('stock:7', { waitMs: 2_000 });
 * await stock.run(() => db.query('UPDATE stock SET left = left - 1 WHERE id = 7'));
 * ```
 */
export function getLock(key: LockKey, options?: AcquireOptions): Lock {
  const ofLock = checkAcquireOptions(options, 'getLock');
  const name = checkedName(key, ofLock.category);
  const target = (ofCall: AcquireOptions | undefined, where: string, rules?: CallRules): Target => {
    if (ofCall === undefined) return [name, ofLock];
    const checked = { ...ofLock, ...checkAcquireOptions(ofCall, where, rules) };
    return [nameOf(key, checked.category), checked];
  };
  return {
    key: name.key,
    acquire: (ofCall) => publicCall(() => resolveOpen(acquireNow(...target(ofCall, 'acquire')))),
    tryAcquire: (ofCall) => publicCall(() => tryNow(...target(ofCall, 'tryAcquire', tryRules))),
    run: (routine, ofCall) =>
      publicCall(() => runNow(checkedRoutine(routine, 'run(routine, options)', ofCall), ...target(ofCall, 'run'))),
    whenFree: (ofCall) => publicCall(() => whenFreeNow(...target(ofCall, 'whenFree', whenFreeRules))),
    release: () => publicCall(() => releaseNewest(name)),
    isLocked: () => publicCall(async () => (await inspectNow(name)).holds.length > 0),
    isHeld: () => holdCount(name) > 0,
    holdCount: () => holdCount(name),
    inspect: () => publicCall(() => inspectNow(name)),
    forceRelease: () => publicCall(() => failAt(new CallSite(), forceReleaseLock(currentRuntime(), name))),
  };
}

/**
 * Locks a key for the current request or job: `lock.run(key, routine)` is the usual way. Outside a request, use it within
 * `runInTrace`. Its methods work when destructured.
 *
 * @example
 * ```ts
 * import { lock } from 'reenlock';
 *
 * await lock.run('order:42', async (hold) => {
 *   await charge('42', hold.signal);
 * });
 * ```
 */
export const lock: LockFunctions = {
  acquire: (key, options) =>
    publicCall(() => {
      const checked = checkAcquireOptions(options, 'acquire');
      return resolveOpen(acquireNow(nameOf(key, checked.category), checked));
    }),
  tryAcquire: (key, options) => publicCall(() => tryNow(...targetOf(key, options, 'tryAcquire', tryRules))),
  run: (key, routine, options) =>
    publicCall(() =>
      runNow(checkedRoutine(routine, 'run(key, routine, options)', options), ...targetOf(key, options, 'run')),
    ),
  whenFree: (key, options) => publicCall(() => whenFreeNow(...targetOf(key, options, 'whenFree', whenFreeRules))),
  release: (key, options) => publicCall(() => releaseNewest(targetOf(key, options, 'release')[0])),
  acquireAll: (keys, options) => publicCall(() => acquireAllNow(keys, checkAcquireOptions(options, 'acquireAll'))),
  runAll: (keys, routine, options) =>
    publicCall(() => {
      const checked = checkedRoutine(routine, 'runAll(keys, routine, options)', options);
      return runAllNow(keys, checked, checkAcquireOptions(options, 'runAll'));
    }),
};

type Target = [LockName, AcquireOptions];

/** The rules of the options that a call takes, if it does not take all. */
type CallRules = Partial<Rules<AcquireOptions>>;

function targetOf(key: LockKey, options: AcquireOptions | undefined, where: string, rules?: CallRules): Target {
  const checked = checkAcquireOptions(options, where, rules);
  return [nameOf(key, checked.category), checked];
}

/** The name of a key. A re-entered key was checked when it was first acquired. */
export function nameOf(key: LockKey, category: string | undefined): LockName {
  return currentScope()?.holds.newestName(key, category) ?? checkedName(key, category);
}

/** A try does not wait: it refuses the options about waiting, unless they are defaults of `getLock`. */
const { waitMs: _, signal: __, ...tryRules } = acquireRules;

/** Checked before the key is acquired. Other libraries have the routine last. */
function checkedRoutine<R>(routine: R, usage: string, options: unknown): R {
  if (typeof routine === 'function') return routine;
  const where = usage.slice(0, usage.indexOf('('));
  const words = typeof options === 'function' ? 'a function, with the options after it' : callable.expected;
  const rule: Rule = { ...callable, expected: words, hint: () => `write \`${usage}\`` };
  checkValue(`the routine of ${where}`, routine, rule);
  return routine;
}

function acquireNow(name: LockName, options: AcquireOptions): MaybePromise<ScopedHold> {
  return acquire(ownBranch(name), name, options, 'code');
}

async function tryNow(name: LockName, options: TryOptions): Promise<Hold | null> {
  const hold = await tryAcquire(ownBranch(name), name, options, 'code');
  hold?.assertOpen();
  return hold ?? null;
}

/**
 * Resolves with a hold that is still open when the caller continues. Not an async function, which takes more memory for each
 * waiter. A re-entry makes one promise: with an async context, promises are most of its cost.
 */
function resolveOpen(acquired: MaybePromise<ScopedHold>): Promise<ScopedHold> {
  if (isPromise(acquired)) return Promise.resolve(acquired).then(assertOpenHold);
  return resolved.then(() => assertOpenHold(acquired));
}

const resolved: Promise<void> = Promise.resolve();

function assertOpenHold(hold: ScopedHold): ScopedHold {
  hold.assertOpen();
  return hold;
}

/** Locks a key for a routine. The options are checked already. */
export function runNow<T>(
  routine: (hold: Hold) => T | PromiseLike<T>,
  name: LockName,
  options: AcquireOptions,
): Promise<T> {
  const branch = ownBranch(name).open();
  return runHeld(branch, acquire(branch, name, options, 'code'), routine, releaseKept);
}

function acquireAllNow(keys: readonly LockKey[], options: AcquireOptions): Promise<ScopedBatch> {
  const names = checkedNames(keys, options.category);
  return acquireBatch(ownBranch(names[0] as LockName), names, options);
}

async function acquireBatch(branch: Branch, names: readonly LockName[], options: AcquireOptions): Promise<ScopedBatch> {
  const batch = new ScopedBatch(names, await new Batch(branch, names, options, 'code').acquire());
  batch.assertOpen();
  return batch;
}

/** Locks several keys for a routine. The options are checked already. */
export function runAllNow<T>(
  keys: readonly LockKey[],
  routine: (hold: BatchHold) => T | PromiseLike<T>,
  options: AcquireOptions,
): Promise<T> {
  const names = checkedNames(keys, options.category);
  const branch = ownBranch(names[0] as LockName).open();
  return runHeld(branch, acquireBatch(branch, names, options), routine, releaseAllKept);
}

function whenFreeNow(name: LockName, options: AcquireOptions): Promise<void> {
  return whenFree(currentRuntime(), currentBranch(), name, options);
}

function inspectNow(name: LockName): Promise<LockInfo> {
  return failAt(new CallSite(), inspectLock(currentRuntime(), name));
}

/** Like `hold.release`, a failure that nobody awaits does not end the process. */
function releaseNewest(name: LockName): Promise<void> {
  const branch = ownBranch(name);
  const hold = branch.scope.holds.newestHold(name.id, branch);
  if (hold === undefined) throw new LockNotHeldError(name);
  return hold.release();
}

/** How many holds on a key the branch of the calling code has, with those around it. */
function holdCount(name: LockName): number {
  const branch = currentBranch();
  return branch?.scope.holds.holdCount(name.id, branch) ?? 0;
}

/** The runtime of the calling code's scope, or of the default `Locks`: for calls that need no owner. */
function currentRuntime(): Runtime {
  return currentScope()?.runtime ?? runtimeOf(defaultLocks());
}
