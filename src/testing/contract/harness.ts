import type { StoreOutcome } from '../../core/model/errors/failures.ts';
import type { LockStore, StoreCapabilities } from '../../core/model/store.ts';

/** What the contract needs to know of a store. */
export interface StoreHarness {
  /** Creates a store without any lock. It is used until the next call. */
  create(): Promise<LockStore>;
  /** Lets at least `ms` milliseconds of the store's time pass. */
  elapse(ms: number): Promise<void>;
  /** What the store declares that it lacks. The clauses that need it do not apply; what holds instead is tested. */
  readonly lacks?: readonly (keyof StoreCapabilities | 'list' | 'nesting')[];
  /** The ways in which the store can lose all of its data; none for a store whose data outlives everything. */
  readonly losses: readonly StoreLoss[];
  /** The ways in which a call can fail; none for a store whose calls can't. */
  readonly faults: readonly StoreFault[];
  /** Set for a store that can be a node of a quorum. */
  readonly isNode?: true;
}

/** A way in which a store can lose all of its data. */
export interface StoreLoss {
  /** Follows "After" in the titles of tests: `'FLUSHALL'`. */
  readonly name: string;
  /** Makes it happen. Resolves with the store to go on with. */
  happen(): Promise<LockStore>;
}

/** A way in which the calls of a store can fail. */
export interface StoreFault {
  /** Begins the titles of tests: `'nobody listens at the port'`. */
  readonly name: string;
  /** What must be known of a call that fails in this way. */
  readonly outcome: StoreOutcome;
  /** Creates a store all of whose calls fail; `inspect` may succeed. */
  create(): Promise<{ readonly store: LockStore; close(): Promise<void> }>;
}

/** A lease that expires soon; no test expects anything before its end. */
export const shortMs = 30;
/** A lease that does not end during a test, however busy the machine is. */
export const longMs = 60_000;
/** After so long a process that has not polled for `shortMs` is gone: the contract leaves a tenth to the store. */
export const goneMs: number = 1.2 * shortMs;
