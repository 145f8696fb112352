import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { isLockError, type LockError, type LockKeys } from '../core/index.ts';
import { openContext, runGuard } from '../http/connect.ts';
import { type CommonGuardOptions, RequestGuard } from '../http/guard.ts';
import { holdNames, type ShownHolds } from '../http/hold-names.ts';
import { checkProblemCall, isRightCall } from '../http/misuse.ts';
import { problemOn } from '../http/problem.ts';
import { warnOfTaken } from '../http/request-holds.ts';
import type { TraceContextOptions } from '../http/traced-request.ts';
import { checkHandler, watchHandlers } from './handler-timeout.ts';

declare module 'fastify' {
  interface FastifyRequest extends Readonly<ShownHolds> {}
}

/** A request as a key function sees it: its route's parameters are strings. */
export type KeyRequest = FastifyRequest<{ Params: Record<string, string> }>;

/** A hook that does not change the types of the routes that have it. */
export type Guard = (
  request: { readonly raw: IncomingMessage | Http2ServerRequest },
  reply: { readonly raw: ServerResponse | Http2ServerResponse },
  done: (error?: Error) => void,
) => void;

/** A plugin for `app.register`. It is not encapsulated: its hook is for the routes of the instance that registers it. */
export type Plugin = (app: FastifyInstance, options: object, done: (error?: Error) => void) => void;

/** Returns the key to lock for a request, or several keys: they are acquired in a fixed order, all or none. */
export type KeyFunction<R = KeyRequest> = (request: R, reply: FastifyReply) => LockKeys | PromiseLike<LockKeys>;

/** The options of a guard: those of its acquire, and how it responds. The request's type is that of the key function. */
export interface GuardOptions<R = KeyRequest> extends CommonGuardOptions {
  /** Returns true, or a promise of it, to let a request in without the lock. */
  readonly skip?: ((request: R, reply: FastifyReply) => boolean | PromiseLike<boolean>) | undefined;
  /** Responds to a refused request, with `reply.send`, instead of the application's error handler. */
  readonly handler?: ((error: LockError, request: R, reply: FastifyReply) => unknown) | undefined;
}

/**
 * Gives each request its trace id and its scope: the locks that later code acquires belong to the request. They are released when the
 * work on the request has ended. Work that goes on after that has no lock. Register this plugin before
 * all others. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import fastify from 'fastify';
 * import { lockOn, traceContext } from 'reenlock/fastify';
 *
 * const app = fastify();
 * await app.register(traceContext());
 * app.post('/report', { preHandler: lockOn('report') }, async () => {
 *   await writeReport();
 * });
 * ```
 */
export function traceContext(options?: TraceContextOptions): Plugin {
  const trace = openContext(options);
  return unencapsulated((app) => {
    decorate(app, holdNames(options?.holdName));
    watchHandlers(app);
    app.addHook('onRequest', function traceContext(request, reply, next) {
      // How @fastify/websocket marks a request whose socket its route has.
      const isTakenOver = (): boolean => (request as { readonly ws?: unknown }).ws === true && reply.sent;
      trace(request.raw, reply.raw, next as (error?: unknown) => void, { awaitsMiddleware: false, isTakenOver });
    });
  });
}

/**
 * Guards a route. Use it as the route's `preHandler`, or at another hook where the parts of the key are known. The handler runs while
 * the request holds the lock, which is released when the work on the request has ended. A request that waits longer than `waitMs`
 * (default 15 000 ms) gets a 423 with `Retry-After`, through the application's error handler. If the client disconnects during the
 * wait, the request leaves the queue, and the handler doesn't run. Throws `LockConfigError` for bad options, and for a constant key
 * that looks like a template.
 *
 * @example
 * ```ts
 * import fastify from 'fastify';
 * import { type KeyRequest, lockOn, traceContext } from 'reenlock/fastify';
 *
 * const app = fastify();
 * await app.register(traceContext());
 * const guard = lockOn((request: KeyRequest) => `order:${request.params.id}`, { waitMs: 2_000 });
 * app.post<{ Params: { id: string } }>('/orders/:id', { preHandler: guard }, async (request) => {
 *   await charge(request.params.id);
 * });
 * ```
 */
export function lockOn<R = KeyRequest>(key: string | KeyFunction<R>, options?: GuardOptions<NoInfer<R>>): Guard {
  const guard = new RequestGuard<readonly [R, FastifyReply]>(key, options);
  return function lockGuard(request, reply, done) {
    if (!isRightCall('fastify', request, reply, reply?.raw, done as (error?: unknown) => void)) return;
    checkHandler(request as FastifyRequest);
    const { raw, routeOptions } = request as FastifyRequest;
    const call = [request as R, reply as FastifyReply] as const;
    const routeOf = (): string | undefined => routeOptions.url && `${raw.method} ${routeOptions.url}`;
    runGuard(guard, raw, reply.raw as ServerResponse, done as (error?: unknown) => void, call, routeOf);
  };
}

/**
 * Responds to a lock error with an RFC 9457 problem document. Use it as the application's error handler, where it passes other errors
 * on, or as the `handler` of a guard.
 *
 * @example
 * ```ts
 * import fastify from 'fastify';
 * import { lockOn, sendProblem, traceContext } from 'reenlock/fastify';
 *
 * const app = fastify();
 * await app.register(traceContext());
 * app.setErrorHandler(sendProblem);
 * app.post('/report', { preHandler: lockOn('report') }, async () => writeReport());
 * ```
 */
export function sendProblem(error: Error, _request: FastifyRequest, reply: FastifyReply): void {
  checkProblemCall(reply, 'app.setErrorHandler(sendProblem)');
  if (reply.raw.headersSent || !isLockError(error)) throw error;
  const { status, headers, body } = problemOn(error, reply.raw, reply);
  // As bytes: Fastify adds a charset to the type of text.
  reply.code(status).headers(headers).send(Buffer.from(body));
}

/** Fastify refuses to register a plugin on a version that it is not made for. */
const pluginMeta: object = { [Symbol.for('plugin-meta')]: { name: 'reenlock', fastify: '>=5' } };

/** Passes on what `register` throws, such as the error for a route that is there already: `app.ready()` rejects with it then. */
export function plugin(register: (app: FastifyInstance) => void): Plugin {
  const registering: Plugin = (app, _, done) => {
    try {
      register(app);
    } catch (error) {
      done(error as Error);
      return;
    }
    done();
  };
  return Object.assign(registering, pluginMeta);
}

/** Makes Fastify register it on the instance itself, not on a child, as fastify-plugin does. */
function unencapsulated(register: (app: FastifyInstance) => void): Plugin {
  return Object.assign(plugin(register), {
    [Symbol.for('skip-override')]: true,
    [Symbol.for('fastify.display-name')]: 'reenlock',
  });
}

/** Set on an instance whose requests show holds. Its children have it, too. */
const shownOn = Symbol('reenlock.holdNames');

function decorate(app: FastifyInstance, names: readonly [string, string]): void {
  const shown = (app as { [shownOn]?: readonly string[] })[shownOn] ?? [];
  for (const [which, name] of names.entries()) {
    // Two plugins on one instance share their scopes.
    if (shown.includes(name)) continue;
    if (app.hasRequestDecorator(name)) warnOfTaken(names, which as 0 | 1);
    else app.decorateRequest(name, { getter: heldBy(name) as never });
  }
  Object.defineProperty(app, shownOn, { value: [...shown, ...names], configurable: true });
}

/** A guard leaves the holds on the raw request. */
function heldBy(name: string): (this: FastifyRequest) => unknown {
  return function (this) {
    return (this.raw as unknown as Record<string, unknown>)[name];
  };
}
