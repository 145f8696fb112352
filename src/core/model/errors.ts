import type { CallSite } from '../base/call-site.ts';
import { helpPage } from '../base/help-page.ts';
import { type HeldBy, type LockHolder, ShownHolder, whyHeld } from './lock-holder.ts';
import { problemOf } from './problem.ts';

/** The stable code of each kind of lock error; docs/reference/errors.md has a heading for each. */
export type LockErrorCode =
  | 'ERR_LOCK_CONFIG'
  | 'ERR_LOCK_KEY'
  | 'ERR_LOCK_TIMEOUT'
  | 'ERR_LOCK_LIMIT'
  | 'ERR_LOCK_ABORTED'
  | 'ERR_LOCK_DEADLOCK'
  | 'ERR_LOCK_LOST'
  | 'ERR_LOCK_NOT_HELD'
  | 'ERR_LOCK_SCOPE'
  | 'ERR_LOCK_STORE'
  | 'ERR_LOCK_TOKEN'
  | 'ERR_LOCK_CLOSED';

/** What an error has in addition to its message. */
export interface LockErrorDetails {
  /** The key as the application wrote it; never part of the message. */
  readonly key?: string | undefined;
  /** The key's category; never part of the message. */
  readonly category?: string | undefined;
  readonly cause?: unknown;
}

interface Shape {
  readonly code: LockErrorCode;
  readonly status: number;
  readonly expose: boolean;
  readonly retryable: boolean;
  /** A refusal is no bug. Express logs each stack, so the stack of a refusal has no more than the line that made the call. */
  readonly refusal?: boolean;
  readonly retryAfterMs?: number;
}

/** The HTTP status of each error, and whether its caller may try again. */
const shapes = {
  config: { code: 'ERR_LOCK_CONFIG', status: 500, expose: false, retryable: false },
  key: { code: 'ERR_LOCK_KEY', status: 400, expose: true, retryable: false },
  timeout: { code: 'ERR_LOCK_TIMEOUT', status: 423, expose: true, retryable: true, refusal: true },
  limit: { code: 'ERR_LOCK_LIMIT', status: 503, expose: true, retryable: true, refusal: true },
  // Nothing is sent: the client has left. Access logs know this case as 499.
  aborted: { code: 'ERR_LOCK_ABORTED', status: 499, expose: true, retryable: false, refusal: true },
  deadlock: { code: 'ERR_LOCK_DEADLOCK', status: 409, expose: true, retryable: true, refusal: true },
  // The work may have been done, as a whole or in part.
  lost: { code: 'ERR_LOCK_LOST', status: 503, expose: false, retryable: false },
  notHeld: { code: 'ERR_LOCK_NOT_HELD', status: 500, expose: false, retryable: false },
  scope: { code: 'ERR_LOCK_SCOPE', status: 500, expose: false, retryable: false },
  store: { code: 'ERR_LOCK_STORE', status: 503, expose: false, retryable: true, retryAfterMs: 1000 },
  token: { code: 'ERR_LOCK_TOKEN', status: 410, expose: true, retryable: false, refusal: true },
  closed: { code: 'ERR_LOCK_CLOSED', status: 503, expose: true, retryable: true, refusal: true, retryAfterMs: 1000 },
} as const satisfies Record<string, Shape>;

const brand = Symbol.for('reenlock.error');

/**
 * The base class of every error of this package. It has the shape of http-errors: the default error handlers of Express and Koa
 * respond with `status` and `headers`, and show the message only if `expose` is true. Tell the errors apart by `code`.
 *
 * @example
 * ```ts
 * import { isLockError } from 'reenlock';
 *
 * export function statusOf(error: unknown): number {
 *   return isLockError(error) ? error.status : 500;
 * }
 * ```
 */
export class LockError extends Error {
  /** Tells the errors apart; it stays the same from version to version. */
  readonly code: LockErrorCode;
  /** The HTTP status that a default error handler sends. */
  readonly status: number;
  /** The same as `status`, by the name that some error handlers read. */
  readonly statusCode: number;
  /** Whether clients may see the message. */
  readonly expose: boolean;
  /** Whether the call has left no effect, and may succeed when it is made again later. */
  readonly retryable: boolean;
  /** The headers of the response: `Retry-After`, or none. */
  readonly headers: Readonly<Record<string, string>>;
  /** The key that the call was about, as the application wrote it. Loggers show it; JSON does not. */
  declare readonly key: string | undefined;
  /** The category of the key. Loggers show it; JSON does not. */
  declare readonly category: string | undefined;

  constructor(message: string, details: LockErrorDetails, shape: Shape) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.name = new.target.name;
    this.code = shape.code;
    this.status = shape.status;
    this.statusCode = shape.status;
    this.expose = shape.expose;
    this.retryable = shape.retryable;
    this.headers = shape.retryAfterMs === undefined ? {} : { 'Retry-After': retryAfter(shape.retryAfterMs) };
    if (details.key !== undefined) this.key = details.key;
    if (details.category !== undefined) this.category = details.category;
    if (shape.refusal) this.stack = `${this.name}: ${message}`;
  }

  /** What `res.json(error)` in an application's handler sends: neither key nor category. */
  toJSON(): object {
    const { key: _, category: __, ...shown } = this;
    return shown;
  }

  /** Where to read what the error means and what to do: a URL, or a path in the installed package. */
  get help(): string {
    return helpPage(this.code);
  }

  /**
   * The error as the response of a fetch-style handler: its status and headers, and an RFC 9457 problem document, which shows
   * the message only if `expose` is true. Hono's default error handler calls it.
   */
  getResponse(): Response {
    const { status, headers, body } = problemOf(this);
    return new Response(body, { status, headers });
  }
}
Object.defineProperty(LockError.prototype, brand, { value: true });

/**
 * Whether a value is an error of this package. Unlike `instanceof`, it also recognizes errors of another installed copy.
 *
 * @example
 * ```ts
 * import { isLockError, lock } from 'reenlock';
 *
 * await lock.run('order:42', () => charge('42')).catch((error: unknown) => {
 *   if (isLockError(error) && error.retryable) console.log('order 42 is busy: try again later');
 *   else throw error;
 * });
 * ```
 */
export function isLockError(value: unknown): value is LockError {
  return typeof value === 'object' && value !== null && (value as Record<symbol, unknown>)[brand] === true;
}

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
   * Who held the key. Undefined if `waitMs` was 0, if the key became free just then, and if the store did not say so at
   * once. Loggers show it without its `owner`, and `util.inspect` as a whole; no message, JSON or response contains it.
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
 * A lock was asked for outside a request or job, or in one that has ended. Mount `traceContext`, or use `runInTrace`.
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

/** Whether a failed store call certainly had no effect (`not-applied`), or may have had one (`unknown`). */
export type StoreOutcome = 'not-applied' | 'unknown';

/**
 * The store failed or did not reply in time. `cause` is the error of the store's client, if there was one.
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

  constructor(message: string, details: LockErrorDetails & { outcome: StoreOutcome }) {
    super(message, details, shapes.store);
    this.outcome = details.outcome;
  }
}

/** What a store rejects with if it does not know the format of a record. */
export const otherFormatMessage =
  'Expected a lock record in the format of this version of the package, got another format: a process with a newer version uses the lock. Restart this process with that version';

/**
 * `resumeHold` got a token that belongs to no hold: its lease has expired, it was resumed or released before, it was altered, or it
 * never was a token. The error does not say which.
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

/** RFC 9110 §10.2.3: whole seconds. Zero would make the client come back at once. */
function retryAfter(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)));
}

/** Gives an error the stack of the call that failed. A refusal gets only its first frame. */
export function setCallSite(error: unknown, site: Pick<CallSite, 'frames'> | undefined): void {
  const frames = site?.frames ?? [];
  if (frames.length === 0 || !isLockError(error)) return;
  const isRefusal = error.stack?.includes('\n    at ') !== true;
  error.stack = [`${error.name}: ${error.message}`, ...(isRefusal ? frames.slice(0, 1) : frames)].join('\n');
}

/** The errors that the core distinguishes. */
interface ByCode {
  readonly ERR_LOCK_ABORTED: LockAbortedError;
  readonly ERR_LOCK_DEADLOCK: DeadlockError;
  readonly ERR_LOCK_LOST: LockLostError;
  readonly ERR_LOCK_STORE: LockStoreError;
  readonly ERR_LOCK_TIMEOUT: LockTimeoutError;
}

/** As `instanceof`, also for an error of another installed copy of this package: its `Locks` may be used with this one. */
export function hasCode<C extends keyof ByCode>(error: unknown, code: C): error is ByCode[C] {
  return isLockError(error) && error.code === code;
}
