import type { Instant } from '../base/clock.ts';
import type { LockStoreError } from '../model/errors/failures.ts';
import type { AcquireReply, HoldRequest, ReleaseReply } from '../model/store.ts';

/** When a call was sent, and after how long it counts as failed. */
export interface CallTime {
  readonly sent: Instant;
  readonly timeoutMs: number;
}

/** What the error of a call names. */
export interface NamedLock {
  readonly key: string;
  readonly category: string | undefined;
}

/** The hold or waiter of a call. */
export interface CallTarget extends NamedLock {
  readonly request: HoldRequest;
}

/** One acquire, as it is sent to the store. */
export interface AcquireCall extends CallTarget {
  readonly leaseMs: number;
  /** 0 asks once and is not queued. */
  readonly waitMs: number;
  readonly newest?: HoldRequest | undefined;
}

/**
 * Receives the claims in a reply: grants to waiters of this process that are not renewed yet. Returns a promise if some of these
 * waiters get theirs in later rounds of the event loop.
 */
export type OnClaims = (id: string, sent: Instant, reply: AcquireReply | ReleaseReply) => Promise<void> | undefined;

/** Callbacks of a release. */
export interface ReleaseCallbacks {
  /** Called first, with the store's status, and whether an earlier call may have released it already. */
  onStatus(status: ReleaseReply['status'], isRepeat: boolean): void;
  /**
   * Always called last: after the waiters of this process that were handed the lock have it, or when the release is no
   * longer repeated.
   */
  onSettled(): void;
  onError(error: LockStoreError): void;
}
