import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { type CallHandler, type ExecutionContext, type Type, UseInterceptors } from '@nestjs/common';
import { isObservable, NEVER, type Observable, of } from 'rxjs';
import { LockConfigError, type LockError, type LockKeys } from '../core/index.ts';
import { passGuard } from '../http/awaited.ts';
import { type CommonGuardOptions, RequestGuard } from '../http/guard.ts';
import { HandlerWork } from '../http/handler-work.ts';
import type { ShownHolds } from '../http/hold-names.ts';
import { exposeHolds, propertiesOf } from '../http/request-holds.ts';
import { runInRequest, tracedRequest } from '../http/traced-request.ts';
import { watchHandler, watchHandlers } from './handler-watch.ts';
import { rawOf } from './raw.ts';

/** The properties of a request on both platforms, for a key function. For more, name the platform's own type in the function. */
export interface KeyRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly body: unknown;
}

/** The holds of a request, for its handler: `@Req() { lock }: LockedRequest`. */
export interface LockedRequest extends Readonly<ShownHolds> {}

/** Returns the key to lock for a request, or several keys: they are acquired in a fixed order, all or none. */
export type KeyFunction<R = KeyRequest> = (request: R, context: ExecutionContext) => LockKeys | PromiseLike<LockKeys>;

/** The options of a guard: those of its acquire, and how it responds. The request's type is that of the key function. */
export interface GuardOptions<R = KeyRequest> extends CommonGuardOptions {
  /** Returns true, or a promise of it, to let a request in without the lock. */
  readonly skip?: ((request: R, context: ExecutionContext) => boolean | PromiseLike<boolean>) | undefined;
  /**
   * Returns the result of a refused request instead of its route's, or throws. The status is that of the route, unless the
   * handler sets another on the response.
   */
  readonly handler?: ((error: LockError, request: R, context: ExecutionContext) => unknown) | undefined;
}

/**
 * Guards a route, or all routes of a controller. The handler, its pipes and later interceptors run while the request holds the lock,
 * which is released when the response has ended and the handler has settled. Nest's guards run before, without the lock. A request
 * that waits longer than `waitMs` (default 15 000 ms) gets a 423 with `Retry-After`. If the client disconnects during the wait, the
 * request leaves the queue, and the handler doesn't run. Needs `LocksModule`. Throws `LockConfigError` for bad options, and for a
 * constant key that looks like a template. Calls that are not HTTP requests (GraphQL, microservices, gateways) fail with a
 * `LockConfigError`.
 *
 * @example
 * ```ts
 * import { Controller, Param, Post } from '@nestjs/common';
 * import { LockOn } from 'reenlock/nest';
 *
 * @Controller('orders')
 * export class OrdersController {
 *   @Post(':id/pay')
 *   @LockOn((request) => `order:${request.params.id}`, { waitMs: 2_000 })
 *   pay(@Param('id') id: string) { return charge(id); }
 * }
 * ```
 */
export function LockOn<R = KeyRequest>(
  key: string | KeyFunction<R>,
  options?: GuardOptions<NoInfer<R>>,
): MethodDecorator & ClassDecorator {
  const guard = new RequestGuard<readonly [R, ExecutionContext]>(key, options);
  const work = new HandlerWork();
  const intercept = UseInterceptors({ intercept: (context, next) => enter(guard, work, context, next) });
  return (target: object, name?: string | symbol, method?: PropertyDescriptor): void => {
    if (method === undefined) watchHandlers((target as Type).prototype, work);
    else watchHandler(method, work);
    (intercept as (...decorated: unknown[]) => void)(target, name, method);
  };
}

async function enter<R>(
  guard: RequestGuard<readonly [R, ExecutionContext]>,
  work: HandlerWork,
  context: ExecutionContext,
  next: CallHandler<unknown>,
): Promise<Observable<unknown>> {
  const type: string = context.getType();
  if (type !== 'http') {
    throw new LockConfigError(
      `Expected \`@LockOn\` to guard an HTTP route, got a call of the type '${type}': lock in the method with \`lock.run\`, and outside of an HTTP request decorate it with \`@RunInTrace\``,
    );
  }
  const [request, response] = context.getArgs<[R & Routed, ServerResponse]>();
  const req = rawOf<IncomingMessage>(request);
  const result: unknown = await runInRequest(req, () =>
    passGuard<readonly [R, ExecutionContext], unknown>(guard, {
      req,
      res: rawOf(response),
      call: [request, context],
      next: async () => {
        const traced = tracedRequest(req);
        if (traced !== undefined) work.expect(traced);
        return next.handle();
      },
      expose: (holds) => exposeHolds(req, holds, propertiesOf(request)),
      routeOf: () => routeOf(req.method, request),
      // Nest ends the response itself, which changes nothing.
      leave: () => NEVER,
    }),
  );
  // A handler of refusals returns a plain value.
  return isObservable(result) ? result : of(result);
}

/** Where the platforms have the pattern of a request's route. */
interface Routed {
  readonly route?: { readonly path?: string };
  readonly routeOptions?: { readonly url?: string };
}

/** The pattern of the request's route, such as `POST /orders/:id`. */
function routeOf(method: string | undefined, { route, routeOptions }: Routed): string | undefined {
  const pattern = routeOptions?.url ?? route?.path;
  return pattern && `${method} ${pattern}`;
}
