import type { Context, ExtendableContext, Next } from 'koa';
import { isLockError, type LockError, type LockKeys } from '../core/index.ts';
import { awaitedContext, passGuard } from '../http/awaited.ts';
import { type CommonGuardOptions, type Entered, RequestGuard } from '../http/guard.ts';
import type { ShownHolds } from '../http/hold-names.ts';
import { checkCall, checkProblemCall } from '../http/misuse.ts';
import { problemOn } from '../http/problem.ts';
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
  /** Responds to a refused request instead of the application's error handler. */
  readonly handler?: ((error: LockError, ctx: C, next: Next) => unknown) | undefined;
}

/**
 * Gives each request its trace id and its scope: the locks that later code acquires belong to the request. They are released when the
 * work on the request has ended. Work that goes on after that has no lock. Mount this middleware first. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import Koa from 'koa';
 * import { lockOn, traceContext } from 'reenlock/koa';
 *
 * const app = new Koa();
 * app.use(traceContext());
 * app.use(lockOn('report'));
 * app.use(async (ctx) => {
 *   ctx.body = await writeReport();
 * });
 * ```
 */
export function traceContext(options?: TraceContextOptions): Guard {
  const trace = awaitedContext(options);
  return function traceContext(ctx, next) {
    checkCall('koa', ctx, next, ctx.res, next);
    return trace(ctx.req, ctx.res, next, () => ctx.respond === false);
  };
}

/**
 * Guards a route: the middleware after it runs while the request holds the lock, which is released when the work on the request has ended. A
 * request that waits longer than `waitMs` (default 15 000 ms) gets a 423 with `Retry-After`, through the application's error
 * handlers. If the client disconnects during the wait, the request leaves the queue, and no later middleware runs. Throws `LockConfigError`
 * for bad options, and for a constant key that looks like a template.
 *
 * @example
 * ```ts
 * import Koa from 'koa';
 * import { lockOn, traceContext } from 'reenlock/koa';
 *
 * const app = new Koa();
 * app.use(traceContext());
 * app.use(lockOn((ctx) => `order:${ctx.query.id}`, { waitMs: 2_000 }));
 * app.use(async (ctx) => {
 *   await charge(String(ctx.query.id));
 *   ctx.status = 204;
 * });
 * ```
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

/** The pattern of the request's route in @koa/router, such as `POST /orders/:id`; undefined without a router. */
function routeOf(ctx: ExtendableContext): string | undefined {
  const path = (ctx as { _matchedRoute?: unknown })._matchedRoute;
  return typeof path === 'string' ? `${ctx.method} ${path}` : undefined;
}

/**
 * Responds to a lock error with an RFC 9457 problem document. Use it as the `handler` of a guard. It throws other errors again.
 *
 * @example
 * ```ts
 * import Koa from 'koa';
 * import { lockOn, sendProblem, traceContext } from 'reenlock/koa';
 *
 * const app = new Koa();
 * app.use(traceContext());
 * app.use(lockOn('report', { handler: sendProblem }));
 * ```
 */
export function sendProblem(error: LockError, ctx: ExtendableContext): void {
  checkProblemCall(ctx, 'lockOn(key, { handler: sendProblem })');
  // If a response has begun, Koa would append the document to it.
  if (ctx.headerSent || !isLockError(error)) throw error;
  const { status, headers, body } = problemOn(error, ctx.res);
  ctx.status = status;
  ctx.set(headers);
  ctx.body = body;
}
