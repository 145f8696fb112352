import { LockError, type LockErrorDetails, shapes } from './lock-error.ts';

/**
 * Options, arguments or the order of middleware are wrong. It is thrown when you build the middleware or the `Locks` if the mistake
 * shows then, otherwise by the call.
 *
 * @example
 * ```ts
 * import { createLocks, LockConfigError } from 'reenlock';
 *
 * try {
 *   createLocks({ waitMs: Number(process.env.WAIT_MS) });
 * } catch (error) {
 *   if (error instanceof LockConfigError) console.error(error.message); // says what it expected and got
 * }
 * ```
 */
export class LockConfigError extends LockError {
  constructor(message: string, details: LockErrorDetails = {}) {
    super(message, details, shapes.config);
  }
}

/**
 * The key is empty, longer than 4096 bytes in UTF-8, or not a string, finite number or bigint; a list of keys is empty; or the store
 * can't keep the key.
 *
 * @example
 * ```ts
 * import { lock, LockKeyError } from 'reenlock';
 *
 * export function lockName(name: string) {
 *   return lock.acquire(name).catch((error: unknown) => {
 *     throw error instanceof LockKeyError ? new Error('Choose another name') : error;
 *   });
 * }
 * ```
 */
export class LockKeyError extends LockError {
  constructor(message: string, details: LockErrorDetails = {}) {
    super(message, details, shapes.key);
  }
}

/**
 * The call was made outside a request or job, or in one that has ended. Mount `traceContext`, or use `runInTrace`.
 *
 * @example
 * ```ts
 * import { lock, LockScopeError } from 'reenlock';
 *
 * await lock.acquire('order:42').catch((error: unknown) => {
 *   if (error instanceof LockScopeError) console.error('wrap this code in runInTrace');
 *   throw error;
 * });
 * ```
 */
export class LockScopeError extends LockError {
  constructor(message: string, details: LockErrorDetails = {}) {
    super(message, details, shapes.scope);
  }
}

/**
 * The current request or job has no hold on the key, or the hold was already released.
 *
 * @example
 * ```ts
 * import { lock, LockNotHeldError } from 'reenlock';
 *
 * await lock.release('order:42').catch((error: unknown) => {
 *   if (!(error instanceof LockNotHeldError)) throw error;
 * });
 * ```
 */
export class LockNotHeldError extends LockError {
  constructor(details: LockErrorDetails = {}, message = 'The request or job does not hold the lock: acquire it first') {
    super(message, details, shapes.notHeld);
  }
}

/**
 * `resumeHold` got a token that belongs to no hold: its lease has expired, it was resumed or released before, it was altered, or it
 * never was a token. The error does not show which.
 *
 * @example
 * ```ts
 * import { HoldTokenError, resumeHold } from 'reenlock';
 *
 * export function resume(token: string) {
 *   return resumeHold(token).catch((error: unknown) => {
 *     throw error instanceof HoldTokenError ? new Error('This export has ended: start a new one') : error;
 *   });
 * }
 * ```
 */
export class HoldTokenError extends LockError {
  constructor(details: LockErrorDetails = {}) {
    super("The hold can't be resumed: it has ended, or was resumed before", details, shapes.token);
  }
}
