/** Plain `node:http`, Connect and routers with its middleware: `reenlock/node`. Every framework has the same names and options. */
export type { LockBoardOptions } from '../core/http/board/lock-board.ts';
export type { BoardUser } from '../core/http/board/viewer.ts';
export { lockBoard, type Middleware as Guard, sendProblem, traceContext } from '../core/http/connect.ts';
export { type CloseServerOptions, closeServer } from '../core/http/response/close-server.ts';
export type { TraceContextOptions } from '../core/http/traced-request.ts';
export { type GuardOptions, type KeyFunction, lockOn } from './middleware.ts';
