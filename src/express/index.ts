/** Express: `reenlock/express`. The same names and options as `reenlock/koa`. */
export type { LockBoardOptions } from '../core/http/board/lock-board.ts';
export type { BoardUser } from '../core/http/board/viewer.ts';
export { type CloseServerOptions, closeServer } from '../core/http/close-server.ts';
export type { TraceContextOptions } from '../core/http/traced-request.ts';
export { lockBoard } from './board.ts';
export {
  type Guard,
  type GuardOptions,
  type KeyFunction,
  type KeyRequest,
  lockOn,
  sendProblem,
  traceContext,
} from './middleware.ts';
