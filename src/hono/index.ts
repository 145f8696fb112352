/** Hono: `reenlock/hono`. Every framework has the same names and options. */
export type { LockBoardOptions } from '../board/lock-board.ts';
export type { BoardUser } from '../board/viewer.ts';
export type { CloseServerOptions } from '../http/response/close-server.ts';
export type { TraceContextOptions } from '../http/traced-request.ts';
export { lockBoard } from './board.ts';
export { closeServer } from './close-server.ts';
export { type GuardOptions, type KeyFunction, lockOn, sendProblem, traceContext } from './middleware.ts';
