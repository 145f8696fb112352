import type { IncomingMessage, ServerResponse } from 'node:http';
import { expressMiddleware, runWithId } from 'cls-rtracer';
import type { NextFunction, Request, Response } from 'express';
import { chain, type MaybePromise, settle, toNative } from '../core/base/maybe-promise.ts';
import { patchListeners } from '../core/http/bound-listeners.ts';
import { type CommonGuardOptions, type Entered, failureOf, RequestGuard } from '../core/http/guard.ts';
import { clearBodyHeaders, problemOf } from '../core/http/problem.ts';
import {
  isOver,
  runInRequest,
  runTraced,
  type TraceContextOptions,
  Tracing,
  traceIdOf,
} from '../core/http/traced-request.ts';
import { checkCall, checkRTracer } from '../core/http/warnings.ts';
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

/** A middleware that leaves the parameter types of the handlers after it alone. */
export type Guard = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/** What to lock for a request: one key, or several, acquired in one order, all or none. */
export type KeyFunction<R extends IncomingMessage = KeyRequest> = (
  req: R,
  res: Response,
) => LockKeys | PromiseLike<LockKeys>;

/** What a guard takes: the options of its acquire, and how it answers. The request's type is that of its key function. */
export interface GuardOptions<R extends IncomingMessage = KeyRequest> extends CommonGuardOptions {
  /** Lets a request pass without the lock. */
  readonly skip?: ((req: R, res: Response) => boolean | PromiseLike<boolean>) | undefined;
  /** Answers a refused request in place of the application's error handler. */
  readonly handler?: ((error: LockError, req: R, res: Response, next: NextFunction) => unknown) | undefined;
}

/**
 * Gives each request its trace id and its scope: locks taken below belong to it, and are given back when its work is
 * over. Mount it first. Throws `LockConfigError` for bad options.
 */
export function traceContext(options?: TraceContextOptions): Guard {
  const tracing = new Tracing(options);
  checkRTracer();
  // cls-rtracer's context within our own: its id is the trace id, and listeners on the request keep both.
  const trace = expressMiddleware({ requestIdFactory: traceIdOf });
  return function traceContext(req, res, next) {
    checkCall('express', res, next);
    const request = tracing.open(req, res, watchOptions);
    const { traceId } = request.scope;
    runTraced(request, () => (patchListeners(req, res) ? runWithId(next, traceId) : trace(req, res, next)));
  };
}

const watchOptions = { awaitsMiddleware: false };

/**
 * Guards a route: the handlers after it run while the request holds the lock, which is released when their work is over.
 * A request that can't have it in time is answered 423 with Retry-After, through the application's error handlers.
 * Throws `LockConfigError` for bad options, and for a constant key that was meant as a template.
 */
export function lockOn<R extends IncomingMessage = KeyRequest>(
  key: string | KeyFunction<R>,
  options?: GuardOptions<NoInfer<R>>,
): Guard {
  const guard = new RequestGuard(key, options);
  const { skip, handler } = options ?? {};

  // Most keys are there at once, and nothing is skipped: a turn less for them.
  function enter(req: R, res: Response): MaybePromise<Entered | undefined> {
    const lock = (keys: LockKeys): MaybePromise<Entered> => guard.enter(req, keys);
    return chain(toNative(skip?.(req, res)), (isSkipped) => {
      if (isSkipped) return undefined;
      return typeof key === 'string' ? lock(key) : chain(toNative(key(req, res)), lock);
    });
  }

  return function lockGuard(rawReq, rawRes, next) {
    checkCall('express', rawRes, next);
    const req = rawReq as R;
    const res = rawRes as Response;
    const entered = (holds: Entered | undefined): void => {
      // Answered meanwhile, by a time limit for example: nothing may follow, and finalhandler would cut the answer off.
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

/** A `handler` that answers with an RFC 9457 problem document; as error middleware, it leaves other errors alone. */
export function sendProblem(error: LockError, _req: IncomingMessage, res: ServerResponse, next: NextFunction): void {
  if (res.headersSent || !isLockError(error)) {
    next(error);
    return;
  }
  const { status, headers, body } = problemOf(error);
  clearBodyHeaders(res);
  // Not by `writeHead`: what is known when it ends, as that the server closes, is to go into its headers.
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  res.end(body);
}

/** What the application's handler throws or rejects with goes its own way. */
function answer(handle: () => unknown, next: (error: unknown) => void): void {
  new Promise((resolve) => resolve(handle())).catch((error) => next(failureOf(error)));
}
