import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context, MiddlewareHandler, Next } from 'hono';
import { isLockError, type LockError, type LockKeys } from '../core/index.ts';
import { tooOld } from '../core/model/peer.ts';
import { awaitedContext, passGuard } from '../http/awaited.ts';
import { type CommonGuardOptions, type Entered, RequestGuard } from '../http/guard.ts';
import type { ShownHolds } from '../http/hold-names.ts';
import { checkCall, checkProblemCall } from '../http/misuse.ts';
import { problemOn } from '../http/problem.ts';
import { exposeHolds } from '../http/request-holds.ts';
import { runInRequest, type TraceContextOptions } from '../http/traced-request.ts';
import { FetchExchange, fetchExchangeOf } from './fetch-exchange.ts';

declare module 'hono' {
  interface ContextVariableMap extends ShownHolds {}
}

/** Returns the key to lock for a request, or several keys: they are acquired in a fixed order, all or none. */
export type KeyFunction<C extends Context = Context> = (c: C) => LockKeys | PromiseLike<LockKeys>;

/** The options of a guard: those of its acquire, and how it responds. The context's type is that of the key function. */
export interface GuardOptions<C extends Context = Context> extends CommonGuardOptions {
  /** Returns true, or a promise of it, to let a request in without the lock. */
  readonly skip?: ((c: C) => boolean | PromiseLike<boolean>) | undefined;
  /** Returns the response to a refused request, instead of the application's `onError`. */
  readonly handler?: ((error: LockError, c: C, next: Next) => Response | PromiseLike<Response>) | undefined;
}

/**
 * Gives each request its trace id and its scope: the locks that later code acquires belong to the request. They are released when the
 * work on the request has ended. Work that goes on after that has no lock. Mount this middleware first. It runs on `@hono/node-server`,
 * on the servers of Bun and Deno, and in `app.request()` of a test. Only the first tells the peer's address: elsewhere `trust: 'internal'` adopts no
 * trace id, and a predicate gets a request without a socket. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import { Hono } from 'hono';
 * import { lockOn, traceContext } from 'reenlock/hono';
 *
 * const app = new Hono();
 * app.use(traceContext());
 * app.post('/report', lockOn('report'), async (c) => {
 *   await writeReport();
 *   return c.body(null, 204);
 * });
 * ```
 */
export function traceContext(options?: TraceContextOptions): MiddlewareHandler {
  const trace = awaitedContext(options);
  return function traceContext(c, next) {
    const exchange = isHandshake(c) ? (fetchExchangeOf(c) as FetchExchange) : exchangeOf(c, next);
    if (exchange instanceof FetchExchange)
      return trace(
        exchange.req,
        exchange.res,
        () => exchange.run(c, next),
        () => false,
      );
    return trace(exchange.req, exchange.res, next, () => c.finalized && c.res.headers.has(alreadySent));
  };
}

/** On the response of a handler that sends its own on `c.env.outgoing`: `RESPONSE_ALREADY_SENT`. */
const alreadySent = 'x-hono-already-sent';

/** The result of middleware whose response other code has sent. */
export function alreadySentResponse(): Response {
  // The server ignores this header on its own `Response`, which it may have put over Node's; a copy is one of Node's.
  return new Response(null, { headers: { [alreadySent]: 'true' } }).clone();
}

/**
 * Guards a route: the handlers after it run while the request holds the lock, which is released when their work has ended. A request
 * that waits longer than `waitMs` (default 15 000 ms) gets a 423 with `Retry-After`, through the application's `onError`. The
 * callback of a streamed response is not part of that work: see docs/frameworks/choose.md. Throws `LockConfigError` for bad options,
 * and for a constant key that looks like a template.
 *
 * @example
 * ```ts
 * import { Hono } from 'hono';
 * import { lockOn, traceContext } from 'reenlock/hono';
 *
 * const app = new Hono();
 * app.use(traceContext());
 * app.post('/orders/:id', lockOn((c) => `order:${c.req.param('id')}`, { waitMs: 2_000 }), async (c) => {
 *   await charge(c.req.param('id'));
 *   return c.body(null, 204);
 * });
 * ```
 */
export function lockOn<C extends Context = Context>(
  key: string | KeyFunction<C>,
  options?: GuardOptions<NoInfer<C>>,
): MiddlewareHandler {
  const guard = new RequestGuard<readonly [C]>(key, options);
  return function lockGuard(c, next) {
    const exchange = exchangeOf(c, next);
    const { req, res } = exchange;
    const call = [c as C] as const;
    const wasAnswered = c.finalized;
    const expose = (holds: Entered): void => exposeHolds(req, holds, variablesOf(c));
    return runInRequest(req, () =>
      passGuard<readonly [C], Response | undefined>(guard, {
        req,
        res,
        call,
        // Middleware that returns nothing leaves the response as it is.
        next: next as () => Promise<undefined>,
        expose,
        routeOf: () => routeOf(c),
        leave: alreadySentResponse,
        // No event is emitted for a response of middleware above `traceContext`.
        isAnswered: () => exchange instanceof FetchExchange && !wasAnswered && c.finalized,
      }),
    );
  };
}

/** A request and its response, as the life of a request reads them. */
interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
}

/** Those of a context, on any server. Throws `LockConfigError` if there are none, as in a handshake, or if Hono 3 calls. */
function exchangeOf(c: Context, next: Next): Exchange | FetchExchange {
  const { incoming, outgoing } = envOf(c);
  const fetched = incoming === undefined && outgoing === undefined ? fetchExchangeOf(c) : undefined;
  if (fetched === undefined) return nodeOf(c, next);
  checkContext(c, next, fetched.res);
  return fetched;
}

/** Node's request and response of a context. Throws `LockConfigError` if the application is served otherwise, or by Hono 3. */
export function nodeOf(c: Context, next: Next): Exchange {
  const { incoming, outgoing } = envOf(c);
  checkContext(c, next, outgoing);
  return { req: incoming as IncomingMessage, res: outgoing as ServerResponse };
}

/** Whether the request is to become a WebSocket of `@hono/node-server`: Node's response comes with others alone. */
function isHandshake(c: Context | undefined): boolean {
  const { incoming, outgoing } = envOf(c);
  return incoming !== undefined && outgoing === undefined;
}

/** What `@hono/node-server` puts there. */
function envOf(c: Context | undefined): { readonly incoming?: unknown; readonly outgoing?: unknown } {
  return (c?.env ?? {}) as object;
}

function checkContext(c: Context, next: Next, res: unknown): void {
  checkCall('hono', c, next, res, next);
  // A property that Hono 4 has removed. A context has no version.
  if ('runtime' in c) throw tooOld('hono', undefined, '4', 'reenlock/hono');
}

/** What a context has in `c.var`. */
function variablesOf(c: Context): { get: (name: string) => unknown; set: (name: string, value: unknown) => void } {
  return { get: (name) => c.get(name), set: (name, value) => c.set(name, value) };
}

/** The pattern of the request's route, such as `POST /orders/:id`. */
function routeOf({ req }: Context): string | undefined {
  return req.routePath.includes('*') ? undefined : `${req.method} ${req.routePath}`;
}

/**
 * Returns the response to a lock error: an RFC 9457 problem document. Use it as the application's `onError`, where it throws other errors
 * again, or as the `handler` of a guard.
 *
 * @example
 * ```ts
 * import { Hono } from 'hono';
 * import { lockOn, sendProblem, traceContext } from 'reenlock/hono';
 *
 * const app = new Hono();
 * app.use(traceContext());
 * app.post('/report', lockOn('report'), (c) => c.body(null, 204));
 * app.onError(sendProblem);
 * ```
 */
export function sendProblem(error: Error, c: Context): Response {
  checkProblemCall(c, 'app.onError(sendProblem)');
  const { outgoing } = envOf(c);
  const res = (outgoing ?? fetchExchangeOf(c)?.res) as ServerResponse;
  if (res.headersSent || !isLockError(error)) throw error;
  const { status, headers, body } = problemOn(error, res);
  return new Response(body, { status, headers });
}
