import type { Instant } from '../base/clock.ts';
import type { AcquireCall } from '../client/calls.ts';
import type { Granted } from '../client/granted.ts';
import type { HeldBy, LockHolder } from '../model/errors/lock-holder.ts';

/** One acquire on its way to the store. One of `onGranted`, `onRefused` and `onFailed` is called, once. */
export interface AcquireTask extends AcquireCall {
  readonly startedAt: Instant;
  readonly traceId: string;
  /** In a batch: how long after its start it gives up at the latest, unless the store has replied by then. */
  readonly firstCallTimeoutMs?: number | undefined;
  readonly work: Work;
  readonly cancellation: Cancellation;
  /** Whether a holder is work of the same request or trace. */
  heldBy(holder: LockHolder | undefined): HeldBy | undefined;
  /** Whether a call around it holds the key now, so that it re-enters: it may go on while the `Locks` closes. */
  readonly isBeneathHold: boolean;
  /** Whether the store can't let it in before the release of what an ended branch has left: only its scope can. */
  readonly isLeftOut: boolean;
  /** Calls `onChange` whenever `isLeftOut` may have changed, until the returned function is called. It can't change if there is none. */
  listen(onChange: () => void): (() => void) | undefined;
  /** Enters what an ended branch has left, without the store, unless another branch is in it. Returns whether it has ended so. */
  enter(): boolean;
  /** Begins anew, under another hold id, after it has left the queue. */
  beginAgain(): void;
  /** Called if it must wait in the queue. */
  onQueued(): void;
  onGranted(granted: Granted): void;
  /** The key is not free, and the task does not wait. `retryAfterMs` is when another try is worth it. */
  onRefused(retryAfterMs: number): void;
  /** Nothing stays queued or held. */
  onFailed(error: Error): void;
}

/** The work that an acquire waits on behalf of. */
export interface Work {
  readonly traceId: string;
  /** The route of its request, for people, if it is known. */
  readonly route: string | undefined;
  /** The owners whose work stands still meanwhile, if other scopes may wait for them. */
  readonly blockedOwners: readonly string[];
}

/** What makes an acquire give up before its time. */
export interface Cancellation {
  /** The error to give up with now, if there is one. */
  readonly error: Error | undefined;
  /** The error to end a wait with now, if there is one: a job that must stop does not wait, either. */
  readonly waitError: Error | undefined;
  /** Calls `onCancel` once a wait must end, until `unlisten`. It has one listener. */
  listen(onCancel: (error: Error) => void): void;
  unlisten(): void;
}

/** What keeps an acquire from the store: another branch of its scope has the key by a grant that would let both in. */
export interface Obstacle {
  /** What remains of the lease beneath both. */
  readonly leaseRemainingMs: number;
  /** Calls `onEnd` once: when nothing is in the way, or with the error of the grant beneath. Not after `unlisten`. */
  listen(onEnd: (error?: Error) => void): void;
  unlisten(): void;
}
