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
  /** Responds to a refused request instead of `next(error)`. */
  readonly handler?:
    | ((error: LockError, req: R, res: ServerResponse, next: (error?: unknown) => void) => unknown)
    | undefined;
}

/**
 * Guards what `next` calls: it runs while the request holds the lock, which is released when the response has ended. A request that
 * waits longer than `waitMs` (default 15 000 ms) goes to `next(error)`, with the status 423 and `Retry-After`. If the client
 * disconnects during the wait, the request leaves the queue, and `next` is not called. Throws `LockConfigError` for bad options, and
 * for a constant key that looks like a template.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { lockOn, traceContext } from 'reenlock/node';
 *
 * const trace = traceContext();
 * const guard = lockOn((req) => `path:${req.url}`, { waitMs: 2_000 });
 * createServer((req, res) =>
 *   trace(req, res, () => guard(req, res, (error) => res.writeHead(error === undefined ? 200 : 423).end())),
 * ).listen(3000);
 * ```
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
