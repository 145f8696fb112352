/** Nest, on platform-express and platform-fastify: `reenlock/nest`. The guard is a decorator, all else comes with a module. */
export type { LockBoardOptions } from '../core/http/board/lock-board.ts';
export type { BoardUser } from '../core/http/board/viewer.ts';
export { lockBoard, type Middleware, traceContext } from '../core/http/connect.ts';
export type { TraceContextOptions } from '../core/http/traced-request.ts';
export { type GuardOptions, type KeyFunction, type KeyRequest, type LockedRequest, LockOn } from './lock-on.ts';
export { LOCKS, LocksModule, type LocksModuleAsyncOptions, type LocksModuleOptions } from './locks-module.ts';
