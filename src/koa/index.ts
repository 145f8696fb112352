/** Koa: `reenlock/koa`. The same names and options as `reenlock/express`. */
export { type CloseServerOptions, closeServer } from '../core/http/close-server.ts';
export type { TraceContextOptions } from '../core/http/traced-request.ts';
export {
  type Guard,
  type GuardOptions,
  type KeyContext,
  type KeyFunction,
  type LockState,
  lockOn,
  sendProblem,
  traceContext,
} from './middleware.ts';
