import { isLockError, LockKeyError, type LockStoreError } from '../model/errors.ts';

/** The error of a call whose key the store can't keep, which is no failure of the store. Undefined for other errors. */
export function badKey({ cause, key, category }: LockStoreError): LockKeyError | undefined {
  if (!isLockError(cause) || cause.code !== 'ERR_LOCK_KEY') return undefined;
  return new LockKeyError(cause.message, { key, category, cause: cause.cause });
}
