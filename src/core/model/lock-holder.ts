import { inspectWith } from '../base/shown.ts';

/** Who held a key when an acquire gave up, as far as the store said. For operators, never for clients. */
export interface LockHolder {
  /** A trusted caller that has it can re-enter the lock: keep it out of logs that others read. */
  readonly owner: string;
  /** The `instance` of the process that acquired it; undefined if the hold is detached, or if the process has no such name. */
  readonly instance: string | undefined;
  /** Whole milliseconds since the key changed hands. Of several holders, this is about one. */
  readonly heldMs: number;
  /** How many acquires waited, over all processes, the one that gave up included. Of more than 1,000 a store may count these. */
  readonly waiters: number;
}

/** A holder whose owner is not enumerable: a trusted caller could enter the lock with it. */
export class ShownHolder implements LockHolder {
  declare readonly owner: string;
  readonly instance: string | undefined;
  readonly heldMs: number;
  readonly waiters: number;

  constructor({ owner, instance, heldMs, waiters }: LockHolder) {
    Object.defineProperty(this, 'owner', { value: owner });
    this.instance = instance;
    this.heldMs = Math.round(heldMs);
    this.waiters = waiters;
  }
}
inspectWith(ShownHolder, 'owner');
