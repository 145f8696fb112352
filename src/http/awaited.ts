import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RouteOf } from '../core/model/key.ts';
import { bindListeners } from './bound-listeners.ts';
import type { Entered, RequestGuard } from './guard.ts';
import { runTraced, type TraceContextOptions, Tracing, tracedRequest } from './traced-request.ts';

/**
 * `traceContext` in a framework whose middleware awaits the middleware after it. `isDetached` returns whether the application
 * has taken the response over from the framework.
 */
export function awaitedContext(
  options: TraceContextOptions | undefined,
): (req: IncomingMessage, res: ServerResponse, next: () => Promise<void>, isDetached: () => boolean) => Promise<void> {
  const tracing = new Tracing(options);
  return (req, res, next, isDetached) => {
    const request = tracing.open(req, res, { awaitsMiddleware: true, isDetached });
    bindListeners(req, res);
    return runTraced(request, async () => request.watch.run(next));
  };
}

/** One request on its way through a guard, in a framework whose middleware awaits the middleware after it. */
export interface AwaitedCall<Call extends readonly unknown[], T> {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** The framework's arguments of the application's functions. */
  readonly call: Call;
  /** Runs the guarded code. */
  readonly next: () => Promise<T>;
  /** Puts the holds where handlers look for them. */
  readonly expose: (holds: Entered) => void;
  /** Names the route for warnings. */
  readonly routeOf?: RouteOf;
  /** Leaves the response to the code that has ended it while the guard waited. */
  readonly leave: () => T;
  /** Whether the client has its response, if the request's watch can't see that. */
  readonly isAnswered?: () => boolean;
}

/** Runs a guard and the code after it. Returns the result of that code, or of the application's handler of refusals. */
export async function passGuard<Call extends readonly unknown[], T>(
  guard: RequestGuard<Call>,
  { req, res, call, next, expose, routeOf, leave, isAnswered }: AwaitedCall<Call, T>,
): Promise<T> {
  const watch = tracedRequest(req)?.watch;
  // The application may respond first, and then work on under the lock.
  const isEnded = (): boolean => watch?.isEnded === true || isAnswered?.() === true;
  const wasEnded = isEnded();
  let holds: Entered | undefined;
  try {
    holds = await guard.enter(req, call, routeOf);
    // If the caller does not await this middleware, the request may have ended since the grant.
    for (const hold of holds ?? []) hold.assertOpen();
  } catch (error) {
    return guard.refuse(error, res, call, next) as T;
  }
  if (!wasEnded && isEnded()) {
    // After a timeout, for example: its client got the reply that nothing was done.
    await Promise.all((holds ?? []).map((hold) => hold.release()));
    return leave();
  }
  if (holds !== undefined) expose(holds);
  return watch === undefined ? next() : watch.run(next);
}
