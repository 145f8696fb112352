import { after, type MaybePromise } from '../base/maybe-promise.ts';
import { currentScope, warnOnce } from '../base/process-state.ts';
import { hasCode } from '../model/error-code.ts';
import { LockKeyError, LockLostError, LockNotHeldError, LockScopeError } from '../model/errors.ts';
import { type LockKey, type LockKeys, type LockName, lockName, suspiciousSegment } from '../model/key.ts';
import { acquireRules, checkAcquireOptions } from '../model/options.ts';
import type { AcquireOptions, BatchHold, Hold, Lock, LockFunctions, TryOptions } from '../model/types.ts';
import { callable, checkOptions, checkValue } from '../model/validate.ts';
import { forceReleaseLock, inspectLock } from '../runtime/inspect.ts';
import { currentRuntime } from '../runtime/locks.ts';
import type { ScopedHold } from '../scope/hold.ts';
import type { Scope } from '../scope/scope.ts';
import { acquire } from './acquire.ts';
import { Batch } from './batch.ts';
import { ScopedBatch, worstOf } from './batch-hold.ts';

/**
 * The lock on a key. It may be kept, in a singleton too: scope and `Locks` are read at each call. Throws `LockKeyError`
 * for a bad key, `LockConfigError` for bad options.
 */
export function getLock(key: LockKey, options?: AcquireOptions): Lock {
  const ofLock = checkAcquireOptions(options, 'getLock');
  const name = checkedName(key, ofLock.category);
  const target = (ofCall: AcquireOptions | undefined, where: string): Target =>
    ofCall === undefined ? [name, ofLock] : targetOf(key, { ...ofLock, ...checkAcquireOptions(ofCall, where) }, where);
  return {
    key: name.key,
    acquire: (ofCall) => rejecting(() => handed(acquireNow(...target(ofCall, 'acquire')))),
    tryAcquire: (ofCall) => rejecting(() => tryNow(...target(checkedTry(ofCall), 'tryAcquire'))),
    run: (routine, ofCall) => rejecting(() => runNow(checkedRoutine(routine, 'run'), ...target(ofCall, 'run'))),
    release: () => rejecting(() => releaseNewest(name)),
    isLocked: async () => (await inspectLock(currentRuntime(), name)).holds.length > 0,
    isHeld: () => (currentScope()?.holdCount(name.id) ?? 0) > 0,
    holdCount: () => currentScope()?.holdCount(name.id) ?? 0,
    inspect: () => rejecting(() => inspectLock(currentRuntime(), name)),
    forceRelease: () => rejecting(() => forceReleaseLock(currentRuntime(), name)),
  };
}

/** The lock, by key: `lock.acquire(key)` is `getLock(key).acquire()`. Works when destructured. */
export const lock: LockFunctions = {
  acquire: (key, options) => rejecting(() => handed(acquireNow(...targetOf(key, options, 'acquire')))),
  tryAcquire: (key, options) => rejecting(() => tryNow(...targetOf(key, checkedTry(options), 'tryAcquire'))),
  run: (key, routine, options) =>
    rejecting(() => runNow(checkedRoutine(routine, 'run'), ...targetOf(key, options, 'run'))),
  release: (key, options) => rejecting(() => releaseNewest(targetOf(key, options, 'release')[0])),
  acquireAll: (keys, options) => acquireAllNow(keys, options, 'acquireAll'),
  runAll: (keys, routine, options) => rejecting(() => runAllNow(keys, checkedRoutine(routine, 'runAll'), options)),
};

type Target = [LockName, AcquireOptions];

function targetOf(key: LockKey, options: AcquireOptions | undefined, where: string): Target {
  const checked = checkAcquireOptions(options, where);
  return [checkedName(key, checked.category), checked];
}

/** A try does not wait: options that say how are refused, but for those that `getLock` was given for other calls. */
function checkedTry(options: TryOptions | undefined): TryOptions | undefined {
  return options === undefined ? undefined : checkOptions(options, tryRules, 'tryAcquire');
}

const { waitMs: _, signal: __, ...tryRules } = acquireRules;

/** Looked at before the key is asked for: it could only fail. */
function checkedRoutine<R>(routine: R, where: string): R {
  checkValue(`the routine of ${where}`, routine, callable);
  return routine;
}

/** A promise for whatever `call` answers or throws: without the one more promise that an async function would make. */
function rejecting<T>(call: () => MaybePromise<T>): Promise<T> {
  try {
    return Promise.resolve(call());
  } catch (error) {
    return Promise.reject(error);
  }
}

/** Checks a key, and warns once when a part of it was probably a missing value. */
export function checkedName(key: unknown, category: string | undefined): LockName {
  const name = lockName(key, category);
  const suspect = suspiciousSegment(name.key);
  if (suspect !== undefined) {
    warnOnce(
      'LOCK_KEY_SEGMENT',
      `A lock key has a part that reads "${suspect}": a value that it was made from was probably missing`,
    );
  }
  return name;
}

/** Checks a list of keys; each of them once, in the order of the list. */
export function checkedNames(keys: Extract<LockKeys, readonly unknown[]>, category: string | undefined): LockName[] {
  if (!Array.isArray(keys)) throw new LockKeyError(`Expected the lock keys to be a list, got ${typeof keys}`);
  if (keys.length === 0) throw new LockKeyError('Expected the lock key to be one at least, got an empty list');
  const names = new Map<string, LockName>();
  for (const key of keys) {
    const name = checkedName(key, category);
    if (!names.has(name.id)) names.set(name.id, name);
  }
  return [...names.values()];
}

function ownScope(name: LockName): Scope {
  const scope = currentScope();
  if (scope !== undefined) return scope;
  throw new LockScopeError(
    'Expected to be called within a request or job, found no scope. Likely causes: `traceContext()` is not mounted, or below this route; a callback that lost the async context (wrap it with `AsyncResource.bind`); code outside a request, which needs `runInTrace`',
    { key: name.key },
  );
}

function acquireNow(name: LockName, options: AcquireOptions): MaybePromise<ScopedHold> {
  return acquire(ownScope(name), name, options, 'code');
}

async function tryNow(name: LockName, options: TryOptions): Promise<Hold | null> {
  const hold = await acquire(ownScope(name), name, options, 'try');
  hold?.assertOpen();
  return hold ?? null;
}

/** What was acquired, and is still held when it is told. Each waiter has one of these: an async function takes more memory. */
function handed(acquired: MaybePromise<ScopedHold>): Promise<ScopedHold> {
  return Promise.resolve(acquired).then(stillOpen);
}

function stillOpen(hold: ScopedHold): ScopedHold {
  hold.assertOpen();
  return hold;
}

function runNow<T>(routine: (hold: Hold) => T | PromiseLike<T>, name: LockName, options: AcquireOptions): Promise<T> {
  return runHeld(acquireNow(name, options), routine, assertKept);
}

async function acquireAllNow(
  keys: readonly LockKey[],
  options: AcquireOptions | undefined,
  where: string,
): Promise<ScopedBatch> {
  const checked = checkAcquireOptions(options, where);
  const names = checkedNames(keys, checked.category);
  const scope = ownScope(names[0] as LockName);
  const batch = new ScopedBatch(names, await new Batch(scope, names, checked, 'code').acquire());
  batch.assertOpen();
  return batch;
}

function runAllNow<T>(
  keys: readonly LockKey[],
  routine: (hold: BatchHold) => T | PromiseLike<T>,
  options: AcquireOptions | undefined,
): Promise<T> {
  return runHeld(acquireAllNow(keys, options, 'runAll'), routine, assertAllKept);
}

/** Acquires, runs and releases; after a routine that went well, `releaseKept` releases, and rejects where a lock was lost. */
async function runHeld<H extends ScopedHold | ScopedBatch, T>(
  acquired: MaybePromise<H>,
  routine: (hold: H) => T | PromiseLike<T>,
  releaseKept: (hold: H, value: T) => Promise<void>,
): Promise<T> {
  // The request or job may be over before the routine is, or in the very turn in which it begins: it is held all the same.
  const keep = (hold: H): [H, () => void] => {
    hold.assertOpen();
    return [hold, hold.keep()];
  };
  const [hold, settled] = await after(acquired, keep);
  let value: T;
  try {
    value = await routine(hold);
  } catch (error) {
    // What the release says is in the events; the routine's own error is what matters.
    await hold.release().catch(() => {});
    settled();
    throw error;
  }
  await releaseKept(hold, value).finally(settled);
  return value;
}

/** As `assertKept`, for each of them. */
async function assertAllKept(batch: ScopedBatch, value: unknown): Promise<void> {
  const results = await Promise.allSettled(batch.newestFirst.map((hold) => assertKept(hold, value)));
  // All of it is said already: this is for its signal, which listens no more.
  await batch.release().catch(() => {});
  const lost = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
  if (lost.length > 0) throw worstOf(lost);
}

/** After a routine that went well: its result is only good if the lock was held all along. */
async function assertKept(hold: ScopedHold, value: unknown): Promise<void> {
  const { grant } = hold;
  // Nobody has said so yet.
  const hasLapsed = grant.isOpen && !grant.isHeld;
  let lost = grant.lostError ?? (hasLapsed ? lostError(hold, value) : undefined);
  await hold.release().catch((error: unknown) => {
    // Only a loss is an answer; a store that did not answer is told in the events, and asked again.
    if (hasCode(error, 'ERR_LOCK_LOST')) lost ??= lostError(hold, value);
  });
  if (lost !== undefined) throw lostError(hold, value, lost);
}

function lostError(hold: ScopedHold, value: unknown, cause?: LockLostError): LockLostError {
  const message = cause?.message ?? 'The lock was lost while the routine ran: its lease had ended';
  return new LockLostError(message, { key: hold.key, fence: hold.fence, value, cause });
}

async function releaseNewest(name: LockName): Promise<void> {
  const hold = ownScope(name).newestHold(name.id);
  if (hold === undefined) throw new LockNotHeldError({ key: name.key });
  await hold.release();
}
