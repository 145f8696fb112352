/** The core of the package: `reenlock`. */

// Set-up: where locks live, and how they behave by default.

export { MemoryStore } from './memory/memory-store.ts';
export type { CheckedTrust, LocksOptions, LocksSettings, TraceOptions, Trust } from './model/options.ts';
export type { SignedTrust, TraceSignatures } from './model/signature.ts';
export { configureLocks } from './runtime/default-locks.ts';
export { createLocks, type Locks } from './runtime/locks.ts';

// Locking: deep in services, and around their methods.

export { getLock, lock } from './lock/lock.ts';
export type { Lock, LockFunctions } from './lock/lock-functions.ts';
export { Locked, type LockedDecorator, type MethodKey, type ReusableLockedDecorator } from './lock/locked.ts';
export { type ResumeOptions, resumeHold } from './lock/resume.ts';
export type { LockKey, LockKeys } from './model/key.ts';
export type {
  AcquireOptions,
  BatchHold,
  DetachOptions,
  ForceReleaseOptions,
  Hold,
  HoldInfo,
  HoldMode,
  InspectOptions,
  ListOptions,
  LockInfo,
  LockMode,
  LockPage,
  PermitsInfo,
  Reentrant,
  Trace,
  TryOptions,
  WaiterInfo,
  WhenFreeOptions,
} from './model/types.ts';

// Traces: the owner in jobs and in outgoing calls.

export {
  currentTrace,
  type RunInTraceOptions,
  runInTrace,
  type TraceHeadersOptions,
  type TraceRequest,
  traceHeaders,
} from './scope/trace.ts';

// Seeing: listeners of events, a tracing channel, probes and numbers.

export type { AcquireCaller, AcquireMessage } from './lock/acquire-channel.ts';
export type { LockEvent, LockEvents, LockListener } from './model/events.ts';
export type { PingOptions, PingResult } from './runtime/ping.ts';
export type { LockStats, LocksStats } from './runtime/stats.ts';

// Errors: each with a stable code.

export { LockLostError, LockStoreError, type StoreOutcome } from './model/errors/failures.ts';
export { isLockError, LockError, type LockErrorCode, type LockErrorDetails } from './model/errors/lock-error.ts';
export type { HeldBy, LockHolder } from './model/errors/lock-holder.ts';
export {
  HoldTokenError,
  LockConfigError,
  LockKeyError,
  LockNotHeldError,
  LockScopeError,
} from './model/errors/mistakes.ts';
export {
  DeadlockError,
  type DeadlockWait,
  LockAbortedError,
  LockLimitError,
  LocksClosedError,
  LockTimeoutError,
} from './model/errors/refusals.ts';

// For your own store.

export type {
  AcquireReply,
  AcquireTerms,
  EdgeStore,
  HoldRequest,
  InspectReply,
  ListReply,
  ListRequest,
  LockStore,
  ReleaseReply,
  ReleaseTerms,
  RenewReply,
  RenewTerms,
  StoreCapabilities,
  StoreGrant,
  StoreListener,
  StoreMessage,
  StoreWaiter,
  TransferReply,
  TransferTerms,
  Unsubscribe,
  WaitEdge,
  WaiterGrant,
  WaitReply,
} from './model/store.ts';

// Names that other subpaths have: their errors name the subpath. The types do not have them.

/** @internal */
export {
  CasStore,
  closeServer,
  collectLockMetrics,
  configureTestLocks,
  createTestLocks,
  describeStoreContract,
  instrumentLocks,
  LockOn,
  LocksModule,
  lockBoard,
  lockOn,
  MySqlCas,
  mysqlCasTable,
  PostgresCas,
  PostgresStore,
  postgresCasTable,
  postgresSchema,
  QuorumStore,
  RedisCas,
  RedisStore,
  RetryingStore,
  RunInTrace,
  sendProblem,
  traceContext,
} from './elsewhere.ts';
