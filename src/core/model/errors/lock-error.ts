import { helpPage } from '../../base/help-page.ts';
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

/** The details of an error, in addition to its message. */
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

type Kind =
  | 'config'
  | 'key'
  | 'timeout'
  | 'limit'
  | 'aborted'
  | 'deadlock'
  | 'lost'
  | 'notHeld'
  | 'scope'
  | 'store'
  | 'storeOfHold'
  | 'token'
  | 'closed';

/** The HTTP status of each error, and whether its caller may try again. */
export const shapes: Readonly<Record<Kind, Shape>> = {
  config: { code: 'ERR_LOCK_CONFIG', status: 500, expose: false, retryable: false },
  key: { code: 'ERR_LOCK_KEY', status: 400, expose: true, retryable: false },
  timeout: { code: 'ERR_LOCK_TIMEOUT', status: 423, expose: true, retryable: true, refusal: true },
  limit: { code: 'ERR_LOCK_LIMIT', status: 503, expose: true, retryable: true, refusal: true },
  // Nothing is sent: the client has disconnected. Access logs know this case as 499.
  aborted: { code: 'ERR_LOCK_ABORTED', status: 499, expose: true, retryable: false, refusal: true },
  deadlock: { code: 'ERR_LOCK_DEADLOCK', status: 409, expose: true, retryable: true, refusal: true },
  // The work may have been done, as a whole or in part.
  lost: { code: 'ERR_LOCK_LOST', status: 503, expose: false, retryable: false },
  notHeld: { code: 'ERR_LOCK_NOT_HELD', status: 500, expose: false, retryable: false },
  scope: { code: 'ERR_LOCK_SCOPE', status: 500, expose: false, retryable: false },
  store: { code: 'ERR_LOCK_STORE', status: 503, expose: false, retryable: true, retryAfterMs: 1000 },
  // Of a call on a hold: what was done under it would be done again.
  storeOfHold: { code: 'ERR_LOCK_STORE', status: 503, expose: false, retryable: false },
  token: { code: 'ERR_LOCK_TOKEN', status: 410, expose: true, retryable: false, refusal: true },
  closed: { code: 'ERR_LOCK_CLOSED', status: 503, expose: true, retryable: true, refusal: true, retryAfterMs: 1000 },
};

const brand = Symbol.for('reenlock.error');

/**
 * The base class of every error of this package. It has the shape of http-errors: the default error handlers of Express and Koa
 * respond with `status` and `headers`, and show the message only if `expose` is true. Distinguish the errors by `code`.
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
  /** Identifies the kind of error; it stays the same from version to version. */
  readonly code: LockErrorCode;
  /** The HTTP status that a default error handler sends. */
  readonly status: number;
  /** The same as `status`, by the name that some error handlers read. */
  readonly statusCode: number;
  /** Whether clients may see the message. */
  readonly expose: boolean;
  /**
   * Whether no lock was granted, and the same call may succeed later. False if a lock was held: work may have been done under it.
   * Says nothing about work before the call, such as that around a nested `run`: undo that before the error becomes the response,
   * since `Retry-After` asks the client for the whole request again.
   */
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

  /** For `res.json(error)` in an application's handler: without key and category. */
  toJSON(): object {
    const { key: _, category: __, ...shown } = this;
    return shown;
  }

  /** The page that explains the error: a URL, or a path in the installed package. */
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

/** RFC 9110 §10.2.3: whole seconds. With zero, the client would try again at once. */
function retryAfter(ms: number): string {
  return String(Math.max(1, Math.ceil(ms / 1000)));
}
