import type { Context, ExtendableContext, Next } from 'koa';
import { isLockError, type LockError, type LockKeys } from '../core/index.ts';
import { problemOf } from '../core/model/problem.ts';
import { awaitedContext, passGuard } from '../http/awaited.ts';
import { type CommonGuardOptions, type Entered, RequestGuard } from '../http/guard.ts';
import type { ShownHolds } from '../http/hold-names.ts';
import { checkCall, checkProblemCall } from '../http/misuse.ts';
import { clearBodyHeaders, leaveError } from '../http/problem.ts';
import { exposeHolds, propertiesOf } from '../http/request-holds.ts';
import { runInRequest, type TraceContextOptions } from '../http/traced-request.ts';

declare module 'koa' {
  interface DefaultState extends ShownHolds {}
}

/** For an application that types its own state: `new Koa<MyState & LockState>()`. */
export interface LockState extends ShownHolds {}

/** A context as a key function sees it: its route's parameters are strings. */
export type KeyContext = Context & { params: Record<string, string> };

/** A middleware that does not change the context types of the handlers after it. */
export type Guard = (ctx: ExtendableContext, next: Next) => Promise<void>;

/** Returns the key to lock for a request, or several keys: they are acquired in a fixed order, all or none. */
export type KeyFunction<C extends ExtendableContext = KeyContext> = (ctx: C) => LockKeys | PromiseLike<LockKeys>;

/** The options of a guard: those of its acquire, and how it responds. The context's type is that of the key function. */
export interface GuardOptions<C extends ExtendableContext = KeyContext> extends CommonGuardOptions {
  /** Returns true, or a promise of it, to let a request in without the lock. */
  readonly skip?: ((ctx: C) => boolean | PromiseLike<boolean>) | undefined;
  /** Responds to a refused request in place of the application's error handler. */
  readonly handler?: ((error: LockError, ctx: C, next: Next) => unknown) | undefined;
}

/**
 * Gives each request its trace id and its scope. Locks that later code takes belong to this scope, and are released when
 * the work on the request is over. Mount it first. Throws `LockConfigError` for bad options.
 */
export function traceContext(options?: TraceContextOptions): Guard {
  const trace = awaitedContext(options);
  return function traceContext(ctx, next) {
    checkCall('koa', ctx, next, ctx.res, next);
    return trace(ctx.req, ctx.res, next, () => ctx.respond === false);
  };
}

/**
 * Guards a route: the middleware after it runs while the request holds the lock, which is released when its work is over.
 * A request that does not get the lock in time gets a 423 with Retry-After, through the application's error handlers. If its
 * client disconnects while it waits, it leaves the queue, and no handler runs.
 * Throws `LockConfigError` for bad options, and for a constant key that was meant as a template.
 */
export function lockOn<C extends ExtendableContext = KeyContext>(
  key: string | KeyFunction<C>,
  options?: GuardOptions<NoInfer<C>>,
): Guard {
  const guard = new RequestGuard<readonly [C]>(key, options);
  return function lockGuard(ctx, next) {
    // Thrown, not rejected: Express 4 ignores promises.
    checkCall('koa', ctx, next, ctx.res, next);
    const { req, res } = ctx;
    const expose = (holds: Entered): void => exposeHolds(req, holds, propertiesOf((ctx as unknown as Context).state));
    const call = [ctx as C] as const;
    return runInRequest(req, () =>
      passGuard(guard, { req, res, call, next, expose, routeOf: () => routeOf(ctx), leave: () => {} }),
    );
  };
}

/** The pattern of the request's route, such as `POST /orders/:id`, as @koa/router tells it; undefined without a router. */
function routeOf(ctx: ExtendableContext): string | undefined {
  const path = (ctx as { _matchedRoute?: unknown })._matchedRoute;
  return typeof path === 'string' ? `${ctx.method} ${path}` : undefined;
}

/** A `handler` that responds with an RFC 9457 problem document. It throws other errors again. */
export function sendProblem(error: LockError, ctx: ExtendableContext): void {
  checkProblemCall(ctx, 'lockOn(key, { handler: sendProblem })');
  // If a response has begun, Koa would append the document to it.
  if (ctx.headerSent || !isLockError(error)) throw error;
  const { status, headers, body } = problemOf(error);
  leaveError(error, ctx.res);
  clearBodyHeaders(ctx.res);
  ctx.status = status;
  ctx.set(headers);
  ctx.body = body;
}
