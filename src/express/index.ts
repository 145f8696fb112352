/** Express: `reenlock/express`. The same names and options as `reenlock/koa`. */
export { type CloseServerOptions, closeServer } from '../core/http/close-server.ts';
export type { TraceContextOptions } from '../core/http/traced-request.ts';
export {
  type Guard,
  type GuardOptions,
  type KeyFunction,
  type KeyRequest,
  lockOn,
  sendProblem,
  traceContext,
} from './middleware.ts';
