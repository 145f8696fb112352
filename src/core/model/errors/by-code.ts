import type { LockLostError, LockStoreError } from './failures.ts';
import { isLockError, type LockError, type LockErrorCode } from './lock-error.ts';
import type { DeadlockError, LockAbortedError, LockTimeoutError } from './refusals.ts';

/** The errors whose details the core reads. */
interface ByCode extends Record<LockErrorCode, LockError> {
  readonly ERR_LOCK_ABORTED: LockAbortedError;
  readonly ERR_LOCK_DEADLOCK: DeadlockError;
  readonly ERR_LOCK_LOST: LockLostError;
  readonly ERR_LOCK_STORE: LockStoreError;
  readonly ERR_LOCK_TIMEOUT: LockTimeoutError;
}

/** As `instanceof`, also for an error of another installed copy of this package: its `Locks` may be used with this one. */
export function hasCode<C extends LockErrorCode>(error: unknown, code: C): error is ByCode[C] {
  return isLockError(error) && error.code === code;
}
