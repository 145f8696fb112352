/** Koa: `reenlock/koa`. The same names and options as `reenlock/express`. */
export type { LockBoardOptions } from '../board/lock-board.ts';
export type { BoardUser } from '../board/viewer.ts';
export { type CloseServerOptions, closeServer } from '../http/response/close-server.ts';
export type { TraceContextOptions } from '../http/traced-request.ts';
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
