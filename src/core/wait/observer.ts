import type { Waiter, WaitQueue } from './local-queue.ts';

/** Sees the waits of this process. */
export interface WaitObserver {
  /** A waiter was queued. It may be gone already. */
  onWaiting(waiter: Waiter): void;
  /** The store had lost a waiter, and has queued it anew. */
  onRequeued(waiter: Waiter): void;
  /** The store was asked again for the waiters of a key. */
  onPolled(queue: WaitQueue): void;
  /** A queued waiter no longer waits. May be called again. */
  onEnded(waiter: Waiter): void;
}

/** Ends a wait with an error, unless it has ended. */
export type Refuse = (waiter: Waiter, error: Error) => void;

/** Builds the observer of all waits of one `Locks`. */
export type Observe = (refuse: Refuse) => WaitObserver;

/** The holds of this process, as its waits use them. */
export interface Holders {
  /** Another call took the key from this hold. */
  loseById(holdId: string): void;
  /** Very many waiters get a lock, some at a time. This process asks for the next ones when the promise resolves. */
  renewClaims(id: string): Promise<void> | undefined;
  /** From now on messages name what is taken. Keys may have been taken before. */
  verify(): void;
}
