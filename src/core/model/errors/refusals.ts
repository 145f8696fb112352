import { LockError, type LockErrorDetails, shapes } from './lock-error.ts';
import { type HeldBy, type LockHolder, ShownHolder, whyHeld } from './lock-holder.ts';

interface TimeoutDetails {
  readonly waitedMs: number;
  readonly retryAfterMs: number;
  readonly holder?: LockHolder | undefined;
  readonly heldBy?: HeldBy | undefined;
}

/**
 * The key was not free within `waitMs`. Nothing is held or queued: you may try again.
 *
 * @example
 * ```ts
 * import { lock, LockTimeoutError } from 'reenlock';
 *
 * await lock.run('report', () => writeReport(), { waitMs: 500 }).catch((error: unknown) => {
 *   if (!(error instanceof LockTimeoutError)) throw error;
 *   console.log(`busy: try again in ${error.retryAfterMs} ms`);
 * });
 * ```
 */
export class LockTimeoutError extends LockError {
  /** How long the call waited, in whole milliseconds. */
  readonly waitedMs: number;
  /**
   * When another try is worth it, in whole milliseconds: min(leaseRemainingMs, turnMs) + position × turnMs. `leaseRemainingMs` is
   * the rest of the holder's lease when it was last seen, `position` the number of waiters before this call, and `turnMs`
   * how long a turn lasted while the call waited, or while the longest waiter of this process did. If no turn has ended, it is
   * how long holds of the key lasted lately in this process, else those of its category, else all; but no less than the call
   * waited. If no hold has ended yet, `leaseRemainingMs` stands for it. At most 60 000, unless the lease lasts longer.
   */
  readonly retryAfterMs: number;
  /**
   * The holder of the key. Undefined if `waitMs` was 0, if the key became free just then, and if the store did not reply at
   * once. Loggers show it without its trace and branch, and `util.inspect` as a whole; no message, JSON or response contains it.
   */
  readonly holder: LockHolder | undefined;
  /** Whether the holder was work of the same request or trace, as far as it is known. */
  readonly heldBy: HeldBy | undefined;

  constructor(details: LockErrorDetails & TimeoutDetails) {
    const waitedMs = Math.round(details.waitedMs);
    const retryAfterMs = Math.ceil(details.retryAfterMs);
    const why = details.heldBy === undefined ? '' : whyHeld[details.heldBy];
    super(`The lock was not free within ${waitedMs} ms${why}`, details, { ...shapes.timeout, retryAfterMs });
    this.waitedMs = waitedMs;
    this.retryAfterMs = retryAfterMs;
    this.heldBy = details.heldBy;
    this.holder = details.holder && new ShownHolder(details.holder);
  }

  override toJSON(): object {
    const { holder: _, ...shown } = super.toJSON() as { holder: unknown };
    return shown;
  }
}

/**
 * A limit was reached: the waiters of the key, the waiters of the `Locks`, or the depth of re-entry.
 *
 * @example
 * ```ts
 * import { lock, LockLimitError } from 'reenlock';
 *
 * await lock.run('report', () => writeReport()).catch((error: unknown) => {
 *   if (!(error instanceof LockLimitError)) throw error;
 *   console.warn(`too many wait: try again in ${error.retryAfterMs} ms`);
 * });
 * ```
 */
export class LockLimitError extends LockError {
  /** When another try is worth it, in milliseconds: for a key's limit as with `LockTimeoutError`, else a second. */
  readonly retryAfterMs: number;

  constructor(message: string, details: LockErrorDetails & { retryAfterMs?: number } = {}) {
    const { retryAfterMs = 1000 } = details;
    super(message, details, { ...shapes.limit, retryAfterMs });
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * The wait ended before the lock was granted: the signal of the acquire or of its job was aborted, or the client of a guarded request
 * disconnected. `cause` is the reason of the signal.
 *
 * @example
 * ```ts
 * import { lock, LockAbortedError } from 'reenlock';
 *
 * const signal = AbortSignal.timeout(1_000);
 * await lock.run('report', () => writeReport(), { signal }).catch((error: unknown) => {
 *   if (error instanceof LockAbortedError) console.log('stopped to wait:', error.cause);
 *   else throw error;
 * });
 * ```
 */
export class LockAbortedError extends LockError {
  constructor(details: LockErrorDetails = {}) {
    super('The wait for the lock was aborted', details, shapes.aborted);
  }
}

/** One wait of a deadlock. */
export interface DeadlockWait {
  /** The trace that waits. */
  readonly traceId: string;
  /** The key that it waits for, as the application wrote it. */
  readonly key: string;
}

/**
 * The call waited in a cycle: for a key whose holder waits, directly or through others, for a key that the caller holds. The call of
 * the cycle that was queued last gets this error and leaves the queue; the other calls wait on. A call that asks to write while it
 * reads together with other readers also gets it. To avoid deadlocks, lock the keys together with `lock.runAll`.
 *
 * @example
 * ```ts
 * import { DeadlockError, lock } from 'reenlock';
 *
 * await lock.run('wallet:a', () => lock.run('wallet:b', () => moveMoney('a', 'b', 5))).catch((error: unknown) => {
 *   if (error instanceof DeadlockError) console.warn(error.cycle); // lock both with `runAll`
 *   throw error;
 * });
 * ```
 */
export class DeadlockError extends LockError {
  // Private, so that `res.json(error)` in an application's handler can't send it.
  readonly #cycle: readonly DeadlockWait[];

  constructor(
    details: LockErrorDetails & { cycle: readonly DeadlockWait[] },
    message = 'The request waited in a deadlock with others',
  ) {
    super(message, details, shapes.deadlock);
    this.#cycle = details.cycle;
  }

  /** The cycle, this call's wait first. Each waits for a key that the next one's trace holds, the last for one of the first. */
  get cycle(): readonly DeadlockWait[] {
    return this.#cycle;
  }
}

/**
 * The `Locks` is closing or closed: this process shuts down.
 *
 * @example
 * ```ts
 * import { lock, LocksClosedError } from 'reenlock';
 *
 * await lock.run('report', () => writeReport()).catch((error: unknown) => {
 *   if (!(error instanceof LocksClosedError)) throw error;
 *   console.log('shutting down: the next process writes the report');
 * });
 * ```
 */
export class LocksClosedError extends LockError {
  constructor(details: LockErrorDetails = {}) {
    super('The server is shutting down', details, shapes.closed);
  }
}
