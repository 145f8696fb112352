import type { StoreOutcome } from '../../../src/core/model/errors.ts';
import type { LockStore, StoreCapabilities } from '../../../src/core/model/store.ts';

/** What the contract suite needs to know of a store, beside the store itself. */
export interface StoreHarness {
  /** A store without any lock. It lasts until the next call. */
  create(): Promise<LockStore>;
  /** Lets at least this much of the store's time pass. */
  elapse(ms: number): Promise<void>;
  /** What the store declares as lacking: the clauses that need it do not apply, and what holds instead is tested. */
  readonly lacks?: readonly (keyof StoreCapabilities | 'list')[];
  /** The ways in which everything can be lost; each answers the store to go on with. */
  readonly losses: readonly StoreLoss[];
  /** The ways in which a call can fail, with what must then be known of it. */
  readonly faults: readonly StoreFault[];
  /** Set for a store that can be a node of a quorum. */
  readonly isNode?: true;
}

export interface StoreLoss {
  readonly name: string;
  happen(): Promise<LockStore>;
}

export interface StoreFault {
  readonly name: string;
  readonly outcome: StoreOutcome;
  /** A store all of whose calls fail, but for `inspect` where that only reads. */
  create(): Promise<{ readonly store: LockStore; close(): Promise<void> }>;
}

/** A lease that is over soon; nothing that must happen before its end is asserted of it. */
export const shortMs = 30;
/** A lease that does not end during a test, however busy the machine is. */
export const longMs = 60_000;
