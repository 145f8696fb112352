import type { IncomingMessage } from 'node:http';
import type { NextFunction, Request, Response } from 'express';
import { lockBoard as connectBoard } from '../board/connect-board.ts';
import type { LockBoardOptions } from '../board/lock-board.ts';
import type { LockError, LockKeys } from '../core/index.ts';
import { type Middleware, runGuard } from '../http/connect.ts';
import { type CommonGuardOptions, RequestGuard } from '../http/guard.ts';
import type { ShownHolds } from '../http/hold-names.ts';
import { isRightCall } from '../http/misuse.ts';

declare global {
  namespace Express {
    interface Request extends ShownHolds {}
  }
}

/** A request as a key function sees it: its route's parameters are strings. */
export type KeyRequest = Request<Record<string, string>>;

/** Returns the key to lock for a request, or several keys: they are acquired in a fixed order, all or none. */
export type KeyFunction<R extends IncomingMessage = KeyRequest> = (
  req: R,
  res: Response,
) => LockKeys | PromiseLike<LockKeys>;

/** The options of a guard: those of its acquire, and how it responds. The request's type is that of the key function. */
export interface GuardOptions<R extends IncomingMessage = KeyRequest> extends CommonGuardOptions {
  /** Returns true, or a promise of it, to let a request in without the lock. */
  readonly skip?: ((req: R, res: Response) => boolean | PromiseLike<boolean>) | undefined;
  /** Responds to a refused request instead of the application's error handler. */
  readonly handler?: ((error: LockError, req: R, res: Response, next: NextFunction) => unknown) | undefined;
}

/**
 * Guards a route: its handlers run while the request holds the lock, which is released when the work on the request has ended. A
 * request that waits longer than `waitMs` (default 15 000 ms) gets a 423 with `Retry-After`, through the application's error
 * handlers. If the client disconnects during the wait, the request leaves the queue, and no handler runs. Throws `LockConfigError`
 * for bad options, and for a constant key that looks like a template.
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { lockOn, traceContext } from 'reenlock/express';
 *
 * const app = express();
 * app.use(traceContext());
 * app.post('/orders/:id/pay', lockOn((req) => `order:${req.params.id}`, { waitMs: 2_000 }), async (req, res) => {
 *   await charge(req.params.id);
 *   res.sendStatus(204);
 * });
 * ```
 */
export function lockOn<R extends IncomingMessage = KeyRequest>(
  key: string | KeyFunction<R>,
  options?: GuardOptions<NoInfer<R>>,
): Middleware {
  const guard = new RequestGuard<readonly [R, Response]>(key, options);
  return function lockGuard(req, res, next) {
    if (!isRightCall('connect', req, res, res, next)) return;
    runGuard(guard, req, res, next, [req as R, res as Response], () => routeOf(req as Request));
  };
}

/** The pattern of the request's route, such as `POST /orders/:id`; undefined if a router or `app.use` has none. */
function routeOf({ method, baseUrl, route }: Partial<Request>): string | undefined {
  const path: unknown = route?.path;
  return typeof path === 'string' ? `${method} ${baseUrl ?? ''}${path}` : undefined;
}

/**
 * A middleware that serves a page with the holders and waiters of all locks. `authorize` decides who may look, and who may
 * force-release locks. Needs no `traceContext`. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { lockBoard } from 'reenlock/express';
 *
 * const app = express();
 * app.use('/locks', lockBoard({ authorize: (req) => isOperator(req.headers.authorization) && { name: 'ann' } }));
 * ```
 */
export const lockBoard: (options: LockBoardOptions<Request>) => Middleware = connectBoard;
