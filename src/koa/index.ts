/** Koa: `reenlock/koa`. The same names and options as `reenlock/express`. */
export type { LockBoardOptions } from '../core/http/board/lock-board.ts';
export type { BoardUser } from '../core/http/board/viewer.ts';
export { type CloseServerOptions, closeServer } from '../core/http/response/close-server.ts';
export type { TraceContextOptions } from '../core/http/traced-request.ts';
export { lockBoard } from './board.ts';
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
