import type { FastifyInstance, FastifyReply, FastifyRequest, RouteHandlerMethod, RouteOptions } from 'fastify';
import { LockConfigError } from '../core/index.ts';
import { tracedRequest } from '../http/traced-request.ts';

/** Marks a route's configuration, which requests expose. Other plugins may wrap the handler itself again. */
const watched: unique symbol = Symbol('reenlock.handler');

/**
 * Makes the work on requests of routes with a `handlerTimeout` last until their handlers have settled: Fastify responds at the
 * timeout, and the handler works on. Only routes that are declared later can be watched.
 */
export function watchHandlers(app: FastifyInstance): void {
  app.addHook('onRoute', function watchHandler(route) {
    if (!(timeoutOf(route) ?? timeoutOf(this.initialConfig))) return;
    route.handler = watch(route.handler);
    route.config = Object.assign({}, route.config, { [watched]: true });
  });
}

/** Throws `LockConfigError` if the handler of a request may work on after its lock was released. */
export function checkHandler({ routeOptions }: FastifyRequest): void {
  if (!timeoutOf(routeOptions) || watched in routeOptions.config) return;
  throw new LockConfigError(
    `Expected a guarded route with a \`handlerTimeout\` to be declared after \`await app.register(traceContext())\`, or within a plugin that is registered after it, got ${routeOptions.url}, which was declared before: its lock would be released while the handler works`,
  );
}

function watch(handler: RouteHandlerMethod): RouteHandlerMethod {
  return function watchedHandler(this: FastifyInstance, request: FastifyRequest, reply: FastifyReply): unknown {
    const run = (): unknown => Reflect.apply(handler, this, [request, reply]);
    const traced = tracedRequest(request.raw);
    return traced === undefined ? run() : traced.watch.run(run);
  };
}

/** Older versions of Fastify 5 have none. */
function timeoutOf(options: object | RouteOptions): number | undefined {
  return (options as { readonly handlerTimeout?: number }).handlerTimeout;
}
