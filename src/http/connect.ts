import type { IncomingMessage, ServerResponse } from 'node:http';
import { type MaybePromise, settle } from '../core/base/maybe-promise.ts';
import { safely } from '../core/base/safely.ts';
import { isLockError, type LockError } from '../core/model/errors/lock-error.ts';
import type { RouteOf } from '../core/model/key.ts';
import { bindListeners } from './bound-listeners.ts';
import { type Entered, failureOf, type RequestGuard } from './guard.ts';
import { checkProblemCall, isRightCall, isWatchable } from './misuse.ts';
import { problemOn } from './problem.ts';
import { exposeOnRequest, keepOnRequest } from './request-holds.ts';
import type { WorkOptions } from './response/work-state.ts';
import {
  isWorkDone,
  runInRequest,
  runTraced,
  type TraceContextOptions,
  type TracedRequest,
  Tracing,
} from './traced-request.ts';

/**
 * Middleware of Connect, Express and most routers of plain Node. Its types are those of `node:http`, which leave the parameter
 * types of later handlers as they are.
 */
export type Middleware = (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void) => void;

/**
 * Gives each request its trace id and its scope: the locks that later code acquires belong to the request. They are released when the
 * work on the request has ended (docs/concepts/release.md). Work that goes on after that has no lock. Mount this
 * middleware first. Throws `LockConfigError` for bad options.
 *
 * A WebSocket has no response: its handshake passes through without a scope. Use `runInTrace` there.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http';
 * import { lock } from 'reenlock';
 * import { traceContext } from 'reenlock/node';
 *
 * const trace = traceContext();
 * createServer((req, res) =>
 *   trace(req, res, async () => res.end(await lock.run('report', () => writeReport()))),
 * ).listen(3000);
 * ```
 */
export function traceContext(options?: TraceContextOptions): Middleware {
  const trace = openContext(options);
  return function traceContext(req, res, next) {
    trace(req, res, next, { awaitsMiddleware: false });
  };
}

/** As `traceContext`, for a framework that knows more about the work on a request. */
export function openContext(
  options: TraceContextOptions | undefined,
): (req: IncomingMessage, res: ServerResponse, next: (error?: unknown) => void, work: WorkOptions) => void {
  const tracing = new Tracing(options);
  return (req, res, next, work) => {
    if (!isRightCall('connect', req, res, res, next)) return;
    if (!isWatchable(res)) {
      next();
      return;
    }
    const request = opened(tracing, req, res, next, work);
    if (request === undefined) return;
    bindListeners(req, res);
    runTraced(request, next);
  };
}

/** Plain Node has no error handler around its listeners: an error that is thrown there ends the process. */
function opened(
  tracing: Tracing,
  req: IncomingMessage,
  res: ServerResponse,
  next: (error: unknown) => void,
  work: WorkOptions,
): TracedRequest | undefined {
  try {
    return tracing.open(req, res, work);
  } catch (error) {
    next(failureOf(error));
    return undefined;
  }
}

/**
 * Runs a guard before the handlers that `next` calls. `call` has the framework's arguments of the application's functions;
 * `routeOf` names the route for warnings.
 */
export function runGuard<Call extends readonly unknown[]>(
  guard: RequestGuard<Call>,
  req: IncomingMessage,
  res: ServerResponse,
  next: (error?: unknown) => void,
  call: Call,
  routeOf?: RouteOf,
): void {
  const entered = (holds: Entered | undefined): void => {
    // Other code has responded, such as a timeout. No handler may run, and finalhandler would cut the response off.
    if (isWorkDone(req)) return;
    try {
      if (holds !== undefined) exposeOnRequest(req, holds);
    } catch (error) {
      // The application's request can't take the properties: no handler may run without them.
      next(failureOf(error));
      return;
    }
    next();
    safely(() => keepOnRequest(req));
  };
  const refused = (error: unknown): MaybePromise<void> => {
    if (isWorkDone(req)) return undefined;
    return settle(
      () => guard.refuse(error, res, call, next),
      () => {},
      next,
    );
  };
  void runInRequest(req, () => guard.enter(req, call, routeOf).then(entered, refused));
}

/**
 * Responds to a lock error with an RFC 9457 problem document. Use it as error middleware, which passes other errors on, or as the
 * `handler` of a guard.
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { lockOn, sendProblem, traceContext } from 'reenlock/express';
 *
 * const app = express();
 * app.use(traceContext());
 * app.post('/orders/:id', lockOn((req) => `order:${req.params.id}`), (_req, res) => void res.sendStatus(204));
 * app.use(sendProblem);
 * ```
 */
export function sendProblem(
  error: LockError,
  _req: IncomingMessage,
  res: ServerResponse,
  next: (error?: unknown) => void,
): void {
  checkProblemCall(res, 'app.use(sendProblem)');
  if (res.headersSent || !isLockError(error)) {
    next(error);
    return;
  }
  const { status, headers, body } = problemOn(error, res);
  // Not by `writeHead`: headers may still change when the response ends, for example if the server is closing.
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  res.end(body);
}
