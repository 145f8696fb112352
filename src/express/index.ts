/** Express: `reenlock/express`. Every framework has the same names and options. */
export type { LockBoardOptions } from '../board/lock-board.ts';
export type { BoardUser } from '../board/viewer.ts';
export { type Middleware as Guard, sendProblem, traceContext } from '../http/connect.ts';
export { type CloseServerOptions, closeServer } from '../http/response/close-server.ts';
export type { TraceContextOptions } from '../http/traced-request.ts';
export { type GuardOptions, type KeyFunction, type KeyRequest, lockBoard, lockOn } from './middleware.ts';
