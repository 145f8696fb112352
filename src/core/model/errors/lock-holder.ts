import { inspectWith } from '../../base/shown.ts';

/** The holder of a key when an acquire gave up. For operators, never for clients. */
export interface LockHolder {
  /**
   * The trace that has the key; undefined if the hold is detached. A trusted caller that has it can re-enter the lock: keep it
   * out of logs that others read.
   */
  readonly traceId: string | undefined;
  /** The path of its branch below the trace; empty for the root. */
  readonly branch: string;
  /** The `instance` of the process that acquired it; undefined if the hold is detached, or if the process has no such name. */
  readonly instance: string | undefined;
  /** Whole milliseconds since the key changed hands. Of several holders, this is about one. */
  readonly heldMs: number;
  /** How many acquires waited, over all processes, the one that gave up included. Of more than 1,000 a store may count these. */
  readonly waiters: number;
}

/**
 * What a call waited for, if it was work of its own: a hold of its own request, in which it is nested and which it can't
 * re-enter; another branch of the request; or another request of the same trace.
 */
export type HeldBy = 'request' | 'branch' | 'trace';

/** Its words in the message of an error. */
export const whyHeld: Record<HeldBy, string> = {
  request:
    ": this request itself holds it, by a call around this one that it may not re-enter: one of both has `reentrant: false`, as `whenFree` has, or the outer one has `'request'` and this one is in a job. Change that option, or remove this call",
  branch:
    ': another branch of this request holds it, such as parallel work or an earlier attempt that still runs. Await that before this call, or wait longer',
  trace:
    ': a request of the same trace holds it, and this call is not nested in it. If that is the caller of this service, let it send all of `traceHeaders()`',
};

/** A holder whose trace and branch are not enumerable: a trusted caller could enter the lock with them. */
export class ShownHolder implements LockHolder {
  declare readonly traceId: string | undefined;
  declare readonly branch: string;
  readonly instance: string | undefined;
  readonly heldMs: number;
  readonly waiters: number;

  constructor({ traceId, branch, instance, heldMs, waiters }: LockHolder) {
    Object.defineProperties(this, { traceId: { value: traceId }, branch: { value: branch } });
    this.instance = instance;
    this.heldMs = Math.round(heldMs);
    this.waiters = waiters;
  }
}
inspectWith(ShownHolder, 'traceId', 'branch');
