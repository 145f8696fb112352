/** Hono on Node: `reenlock/hono`. Every framework has the same names and options. */
export type { LockBoardOptions } from '../core/http/board/lock-board.ts';
export type { BoardUser } from '../core/http/board/viewer.ts';
export { type CloseServerOptions, closeServer } from '../core/http/response/close-server.ts';
export type { TraceContextOptions } from '../core/http/traced-request.ts';
export { lockBoard } from './board.ts';
export { type GuardOptions, type KeyFunction, lockOn, sendProblem, traceContext } from './middleware.ts';
