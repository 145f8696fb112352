import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LockError, LockKeys } from '../core/index.ts';
import { type Middleware, runGuard } from '../http/connect.ts';
import { type CommonGuardOptions, RequestGuard } from '../http/guard.ts';
import type { ShownHolds } from '../http/hold-names.ts';
import { isRightCall } from '../http/misuse.ts';

declare module 'http' {
  interface IncomingMessage extends ShownHolds {}
}

/** Returns the key to lock for a request, or several keys: they are acquired in a fixed order, all or none. */
export type KeyFunction<R extends IncomingMessage = IncomingMessage> = (
  req: R,
  res: ServerResponse,
) => LockKeys | PromiseLike<LockKeys>;

/** The options of a guard: those of its acquire, and how it responds. The request's type is that of the key function. */
export interface GuardOptions<R extends IncomingMessage = IncomingMessage> extends CommonGuardOptions {
  /** Returns true, or a promise of it, to let a request in without the lock. */
  readonly skip?: ((req: R, res: ServerResponse) => boolean | PromiseLike<boolean>) | undefined;
  /** Responds to a refused request in place of `next(error)`. */
  readonly handler?:
    | ((error: LockError, req: R, res: ServerResponse, next: (error?: unknown) => void) => unknown)
    | undefined;
}

/**
 * Guards what `next` calls: it runs while the request holds the lock, which is released when the response has ended. A
 * request that does not get the lock in time goes to `next(error)`, with the status 423 and Retry-After. Throws
 * `LockConfigError` for bad options, and for a constant key that was meant as a template.
 */
export function lockOn<R extends IncomingMessage = IncomingMessage>(
  key: string | KeyFunction<R>,
  options?: GuardOptions<NoInfer<R>>,
): Middleware {
  const guard = new RequestGuard<readonly [R, ServerResponse]>(key, options);
  return function lockGuard(req, res, next) {
    if (!isRightCall('connect', req, res, res, next)) return;
    runGuard(guard, req, res, next, [req as R, res]);
  };
}
