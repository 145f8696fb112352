import type { LockKey } from '../model/key.ts';
import type { AcquireOptions, BatchHold, Hold, LockInfo, TryOptions, WhenFreeOptions } from '../model/types.ts';

/**
 * The methods of `lock`, each with the key as its first argument. They work when destructured. Each also rejects with
 * `LockKeyError` if the key is empty, too long, or not a string, number or bigint.
 */
export interface LockFunctions {
  /**
   * Acquires the key for the current branch of the request or job. If that branch, or one around it, already holds the key, the
   * call re-enters: it returns a further hold at once, without a store call unless a called service may have the key.
   *
   * Release the hold, or declare it with `await using`. A hold that you don't release passes to the branch around it, and is
   * released at the end of the request or job. Calls in one branch re-enter each other, even in `Promise.all`: use `run` for
   * parallel work.
   *
   * Waits up to `waitMs` (default 15 000 ms), then rejects with `LockTimeoutError`. Rejects with `LockAbortedError` if
   * `signal` is aborted or the client disconnects during the wait, and with `LockLimitError`, `DeadlockError`, `LockLostError`
   * (re-entry on a lost hold, or a lock lost before a reader became the writer), `LockScopeError` outside a request or job,
   * `LockStoreError`, `LocksClosedError`, or `LockConfigError` for bad options. After an error nothing more is held or queued.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * export async function renameUser(id: string, name: string) {
   *   await using hold = await lock.acquire(`user:${id}`, { waitMs: 2_000 });
   *   const update = 'UPDATE users SET name = $1, fence = $2 WHERE id = $3 AND fence <= $2';
   *   await db.query(update, [name, hold.fence, id]);
   * } // releases the lock
   * ```
   */
  acquire(key: LockKey, options?: AcquireOptions): Promise<Hold>;
  /**
   * Acquires the key only if that is possible at once. Returns null if another owner holds the key or waits for it; another
   * branch of the same request is another owner, too. It never waits for the key. Rejects as `acquire` does, except with the
   * errors that end a wait.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * export async function refreshCache() {
   *   await using hold = await lock.tryAcquire('cache:refresh');
   *   if (hold === null) return; // another process refreshes it now
   *   await rebuildCache(hold.signal);
   * }
   * ```
   */
  tryAcquire(key: LockKey, options?: TryOptions): Promise<Hold | null>;
  /**
   * Acquires the key, runs `routine`, and releases the key when the routine's promise has settled, whether it succeeds or
   * fails. Resolves with the routine's result. The routine runs in its own branch: calls within it re-enter, and other branches
   * of the same request wait.
   *
   * Rejects as `acquire` does if the lock is not granted; the routine is not called then. Rejects with the routine's own error
   * if it fails: an error of the release never replaces it. If the lock was lost while the routine succeeded, it rejects with
   * `LockLostError`, whose `value` is the routine's result. A lost lock does not stop the routine: pass `hold.signal` to the
   * calls that you want to stop.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * export function payOrder(id: string) {
   *   return lock.run(`order:${id}`, (hold) => charge(id, hold.signal), { waitMs: 2_000 });
   * }
   * ```
   */
  run<T>(key: LockKey, routine: (hold: Hold) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>;
  /**
   * Resolves when no one holds the key; with `mode: 'read'`, when no one holds it to write; with `permits`, when one is free. It
   * waits in the queue, behind those that waited before. Another owner may have the key a moment later: to use the key,
   * acquire it.
   *
   * Needs no request or job. It re-enters nothing: in a request that holds the key, it waits for that request's own release.
   * Rejects as `acquire` does, with `LockTimeoutError` after `waitMs` (default 15 000 ms).
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * export async function waitForMigration() {
   *   await lock.whenFree('migration', { waitMs: 60_000 });
   * }
   * ```
   */
  whenFree(key: LockKey, options?: WhenFreeOptions): Promise<void>;
  /**
   * Releases the newest hold on the key that the current branch, or one around it, has; never a hold of another branch. Rejects
   * with `LockNotHeldError` if there is none, with `LockScopeError` outside a request or job, and as `hold.release` does.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * await lock.acquire('order:42');
   * await charge('42');
   * await lock.release('order:42');
   * ```
   */
  release(key: LockKey, options?: Pick<AcquireOptions, 'category'>): Promise<void>;
  /**
   * Acquires all of the keys or none of them, as one hold. Keys that are free cost one round trip together. The keys are
   * sorted, and each is acquired once, so batches can't deadlock with each other. `waitMs` is for all keys together. Rejects as
   * `acquire` does, with the key that was not granted in the error's `key`, and with `LockKeyError` for an empty list.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * export async function transfer(from: string, to: string, amount: number) {
   *   await using hold = await lock.acquireAll([`wallet:${from}`, `wallet:${to}`]);
   *   hold.assertHeld();
   *   await moveMoney(from, to, amount);
   * }
   * ```
   */
  acquireAll(keys: readonly LockKey[], options?: AcquireOptions): Promise<BatchHold>;
  /**
   * Runs `routine` with all of the keys held, as `run` does with one. Rejects as `acquireAll` and `run` do; with
   * `LockLostError` if any of the keys was lost.
   *
   * @example
   * ```ts
   * import { lock } from 'reenlock';
   *
   * export function transfer(from: string, to: string, amount: number) {
   *   return lock.runAll([`wallet:${from}`, `wallet:${to}`], () => moveMoney(from, to, amount));
   * }
   * ```
   */
  runAll<T>(
    keys: readonly LockKey[],
    routine: (hold: BatchHold) => T | PromiseLike<T>,
    options?: AcquireOptions,
  ): Promise<T>;
}

/**
 * The lock on one key, as `getLock` returns it. It belongs to no request and to no `Locks`: each call uses those of the code that
 * makes it. The options of `getLock` are the defaults of each call.
 */
export interface Lock {
  /** The key, as it was passed to `getLock`. */
  readonly key: string;
  /**
   * Acquires the key for the current branch, or re-enters. Waits and rejects as `lock.acquire` does.
   *
   * @example
   * ```ts
   * import { getLock } from 'reenlock';
   *
   * const reports = getLock('reports', { leaseMs: 60_000 });
   * await using hold = await reports.acquire();
   * await writeReport(hold.signal);
   * ```
   */
  acquire(options?: AcquireOptions): Promise<Hold>;
  /**
   * Acquires the key if that is possible at once; returns null if not. Rejects as `lock.tryAcquire` does.
   *
   * @example
   * ```ts
   * import { getLock } from 'reenlock';
   *
   * await using hold = await getLock('reports').tryAcquire();
   * if (hold !== null) await writeReport(hold.signal);
   * ```
   */
  tryAcquire(options?: TryOptions): Promise<Hold | null>;
  /**
   * Runs `routine` with the key held, in its own branch, and releases the key in any case. Resolves and rejects as `lock.run`
   * does.
   *
   * @example
   * ```ts
   * import { getLock } from 'reenlock';
   *
   * const reports = getLock('reports', { leaseMs: 60_000 });
   * await reports.run((hold) => writeReport(hold.signal));
   * ```
   */
  run<T>(routine: (hold: Hold) => T | PromiseLike<T>, options?: AcquireOptions): Promise<T>;
  /**
   * Resolves when no one holds the key. It acquires nothing, and needs no request or job. Waits and rejects as `lock.whenFree`
   * does.
   *
   * @example
   * ```ts
   * import { getLock } from 'reenlock';
   *
   * await getLock('migration').whenFree({ waitMs: 60_000 });
   * ```
   */
  whenFree(options?: Omit<WhenFreeOptions, 'category'>): Promise<void>;
  /**
   * Releases the newest hold on the key that the current branch, or one around it, has. Rejects as `lock.release` does.
   *
   * @example
   * ```ts
   * import { getLock } from 'reenlock';
   *
   * const reports = getLock('reports');
   * await reports.acquire();
   * await reports.release();
   * ```
   */
  release(): Promise<void>;
  /**
   * Asks the store whether anyone holds the key, the caller included. Needs no request or job. Rejects with `LockStoreError`.
   * The result may be out of date when you get it: to use the key, acquire it.
   *
   * @example
   * ```ts
   * import { getLock } from 'reenlock';
   *
   * const isRunning = await getLock('nightly-report').isLocked();
   * console.log(isRunning ? 'running' : 'idle');
   * ```
   */
  isLocked(): Promise<boolean>;
  /**
   * Whether the current branch, or one around it, holds the key. Makes no store call; false outside a request or job.
   *
   * @example
   * ```ts
   * import { getLock } from 'reenlock';
   *
   * export function assertOrderIsLocked(id: string) {
   *   if (!getLock(`order:${id}`).isHeld()) throw new Error('Lock the order first');
   * }
   * ```
   */
  isHeld(): boolean;
  /**
   * How many holds on the key the current branch and those around it have. Makes no store call; 0 outside a request or job.
   *
   * @example
   * ```ts
   * import { getLock } from 'reenlock';
   *
   * const depth = getLock('order:42').holdCount();
   * console.log(`order 42 is held ${depth} times by this request`);
   * ```
   */
  holdCount(): number;
  /**
   * Asks the store for the holders and waiters of the key, over all processes. Needs no request or job. Rejects with
   * `LockStoreError`.
   *
   * @example
   * ```ts
   * import { getLock } from 'reenlock';
   *
   * const { holds, waiters } = await getLock('order:42').inspect();
   * console.log(`${holds.length} hold it, ${waiters.length} wait`);
   * ```
   */
  inspect(): Promise<LockInfo>;
  /**
   * Takes the lock from its current holders. Their holds are lost, their signals are aborted, and the next waiter gets the key.
   * Returns false if no one held it, or if it changed hands in between. Needs no request or job. Rejects with `LockStoreError`.
   * It does not stop what the holders do: only the fence refuses their late writes.
   *
   * @example
   * ```ts
   * import { getLock } from 'reenlock';
   *
   * const wasHeld = await getLock('order:42').forceRelease();
   * console.log(wasHeld ? 'released' : 'was free');
   * ```
   */
  forceRelease(): Promise<boolean>;
}
