import { LockError, type LockErrorDetails, shapes } from './lock-error.ts';

/**
 * The lease expired, or the key changed hands, before the hold was released. The work may have been done in part or as a whole, and
 * another owner may have worked at the same time: check before you repeat it.
 *
 * @example
 * ```ts
 * import { lock, LockLostError } from 'reenlock';
 *
 * await lock.run('report', (hold) => writeReport(hold.signal)).catch((error: unknown) => {
 *   if (error instanceof LockLostError) console.error(`lost; the fence was ${error.fence}`);
 *   throw error;
 * });
 * ```
 */
export class LockLostError extends LockError {
  /** The fencing token of the hold that was lost. */
  readonly fence: number;
  /** The result of `run`'s routine, if it succeeded although its hold was lost. */
  readonly value: unknown;

  constructor(message: string, details: LockErrorDetails & { fence: number; value?: unknown }) {
    super(message, details, shapes.lost);
    this.fence = details.fence;
    // Not enumerable, so that `res.json(error)` can't send it.
    Object.defineProperty(this, 'value', { value: details.value, enumerable: false });
  }
}

/** Whether a failed store call certainly had no effect (`not-applied`), or may have had one (`unknown`). */
export type StoreOutcome = 'not-applied' | 'unknown';

/**
 * The store failed or did not reply in time. `cause` is the error of the store's client, if there was one. If an `extend`,
 * `release` or `detach` failed, `retryable` is false and the response has no `Retry-After`: the work was begun, and a request that is
 * sent again would repeat it.
 *
 * @example
 * ```ts
 * import { lock, LockStoreError } from 'reenlock';
 *
 * await lock.run('order:42', () => charge('42')).catch((error: unknown) => {
 *   if (error instanceof LockStoreError) console.error(`the store failed: ${error.outcome}`, error.cause);
 *   throw error;
 * });
 * ```
 */
export class LockStoreError extends LockError {
  /** Whether the call may have had an effect. An acquire of unknown outcome is undone in the background. */
  readonly outcome: StoreOutcome;

  /** `isHeld`: the call was about a lock that the caller holds, so work may have been done. */
  constructor(message: string, details: LockErrorDetails & { outcome: StoreOutcome; isHeld?: boolean }) {
    super(message, details, details.isHeld ? shapes.storeOfHold : shapes.store);
    this.outcome = details.outcome;
  }
}

/** The message of a store's error for a record in an unknown format. */
export const otherFormatMessage =
  'Expected a lock record in the format of this version of the package, got another format: a process with a newer version uses the lock. Restart this process with that version';
