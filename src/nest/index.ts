/** Nest, on platform-express and platform-fastify: `reenlock/nest`. The guard is a decorator, all else comes with a module. */
import './installed.ts';

export { lockBoard } from '../board/connect-board.ts';
export type { LockBoardOptions } from '../board/lock-board.ts';
export type { BoardUser } from '../board/viewer.ts';
export { type Middleware, traceContext } from '../http/connect.ts';
export type { TraceContextOptions } from '../http/traced-request.ts';
export { type GuardOptions, type KeyFunction, type KeyRequest, type LockedRequest, LockOn } from './lock-on.ts';
export { LOCKS, LocksModule, type LocksModuleAsyncOptions, type LocksModuleOptions } from './locks-module.ts';
export { RunInTrace } from './run-in-trace.ts';
