import type { IncomingMessage, ServerResponse } from 'node:http';
import { expressMiddleware, runWithId } from 'cls-rtracer';
import type { NextFunction, Request, Response } from 'express';
import { chain, type MaybePromise, settle, toNative } from '../core/base/maybe-promise.ts';
import { patchListeners } from '../core/http/bound-listeners.ts';
import { type CommonGuardOptions, type Entered, failureOf, RequestGuard } from '../core/http/guard.ts';
import { checkCall, checkFactoryCall } from '../core/http/misuse.ts';
import { clearBodyHeaders, leaveError, problemOf } from '../core/http/problem.ts';
import {
  isOver,
  runInRequest,
  runTraced,
  type TraceContextOptions,
  Tracing,
  traceIdOf,
} from '../core/http/traced-request.ts';
import { checkRTracer } from '../core/http/warnings.ts';
import { type Hold, isLockError, type LockError, type LockKeys } from '../core/index.ts';
import { exposeOnRequest, keepOnRequest } from './request-holds.ts';

declare global {
  namespace Express {
    interface Request {
      /** The newest hold that a guard acquired for this request. */
      lock?: Hold;
      /** All holds that guards acquired for this request, by key. */
      locks?: ReadonlyMap<string, Hold>;
    }
  }
}

/** A request as a key function sees it: its route's parameters are strings. */
export type KeyRequest = Request<Record<string, string>>;

/** A middleware that does not change the parameter types of the handlers after it. */
export type Guard = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/** Returns the key to lock for a request, or several keys: they are acquired in a fixed order, all or none. */
export type KeyFunction<R extends IncomingMessage = KeyRequest> = (
  req: R,
  res: Response,
) => LockKeys | PromiseLike<LockKeys>;

/** The options of a guard: those of its acquire, and how it responds. The request's type is that of the key function. */
export interface GuardOptions<R extends IncomingMessage = KeyRequest> extends CommonGuardOptions {
  /** Returns true to let a request in without the lock. */
  readonly skip?: ((req: R, res: Response) => boolean | PromiseLike<boolean>) | undefined;
  /** Responds to a refused request in place of the application's error handler. */
  readonly handler?: ((error: LockError, req: R, res: Response, next: NextFunction) => unknown) | undefined;
}

/**
 * Gives each request its trace id and its scope. Locks that later code takes belong to this scope, and are released when
 * the work on the request is over. Mount it first. Throws `LockConfigError` for bad options.
 */
export function traceContext(options?: TraceContextOptions): Guard {
  checkFactoryCall('traceContext()', options);
  const tracing = new Tracing(options);
  checkRTracer();
  // Runs cls-rtracer's context inside our own: its id is the trace id, and listeners on the request run in both.
  const trace = expressMiddleware({ requestIdFactory: traceIdOf });
  return function traceContext(req, res, next) {
    checkCall('express', req, res, res, next);
    const request = tracing.open(req, res, watchOptions);
    const { traceId } = request.scope;
    runTraced(request, () => (patchListeners(req, res) ? runWithId(next, traceId) : trace(req, res, next)));
  };
}

const watchOptions = { awaitsMiddleware: false };

/**
 * Guards a route: the handlers after it run while the request holds the lock, which is released when the work is over.
 * A request that does not get the lock in time gets a 423 with Retry-After, through the application's error handlers.
 * Throws `LockConfigError` for bad options, and for a constant key that was meant as a template.
 */
export function lockOn<R extends IncomingMessage = KeyRequest>(
  key: string | KeyFunction<R>,
  options?: GuardOptions<NoInfer<R>>,
): Guard {
  checkFactoryCall('lockOn(key)', key);
  const guard = new RequestGuard(key, options);
  const { skip, handler } = options ?? {};

  // Synchronous if `skip` and the key function are, as most are.
  function enter(req: R, res: Response): MaybePromise<Entered | undefined> {
    const lock = (keys: LockKeys): MaybePromise<Entered> =>
      guard.enter(req, keys, () => routeOf(req as IncomingMessage as Request));
    return chain(toNative(skip?.(req, res)), (isSkipped) => {
      if (isSkipped) return undefined;
      return typeof key === 'string' ? lock(key) : chain(toNative(key(req, res)), lock);
    });
  }

  return function lockGuard(rawReq, rawRes, next) {
    checkCall('express', rawReq, rawRes, rawRes, next);
    const req = rawReq as R;
    const res = rawRes as Response;
    const entered = (holds: Entered | undefined): void => {
      // Other code has responded, such as a timeout. No handler may run, and finalhandler would cut the response off.
      if (isOver(rawReq)) return;
      if (holds !== undefined) exposeOnRequest(req, holds);
      next();
      keepOnRequest(req);
    };
    const refused = (error: unknown): void => {
      if (isOver(rawReq)) return;
      const refusal = guard.refusal(error, rawRes);
      if (refusal === undefined || handler === undefined) next(failureOf(error));
      else answer(() => handler(refusal, req, res, next), next);
    };
    void runInRequest(rawReq, () => settle(() => enter(req, res), entered, refused));
  };
}

/** The pattern of the request's route, such as `POST /orders/:id`; undefined if a router or `app.use` has none. */
function routeOf({ method, baseUrl, route }: Partial<Request>): string | undefined {
  const path: unknown = route?.path;
  return typeof path === 'string' ? `${method} ${baseUrl ?? ''}${path}` : undefined;
}

/** A `handler` that responds with an RFC 9457 problem document. As error middleware, it passes other errors on. */
export function sendProblem(error: LockError, _req: IncomingMessage, res: ServerResponse, next: NextFunction): void {
  if (res.headersSent || !isLockError(error)) {
    next(error);
    return;
  }
  const { status, headers, body } = problemOf(error);
  leaveError(error, res);
  clearBodyHeaders(res);
  // Not by `writeHead`: headers may still change when the response ends, for example if the server is closing.
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  res.end(body);
}

/** Calls the application's handler of refusals. An error that it throws goes to the application's error handlers. */
function answer(handle: () => unknown, next: (error: unknown) => void): void {
  new Promise((resolve) => resolve(handle())).catch((error) => next(failureOf(error)));
}
