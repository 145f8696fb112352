import type { Waiter, WaitQueue } from './local-queue.ts';

/** Sees the waits of this process. */
export interface WaitObserver {
  /** A waiter was queued. It may be gone by now. */
  onWaiting(waiter: Waiter): void;
  /** The store had lost a waiter, and has queued it anew. */
  onRequeued(waiter: Waiter): void;
  /** The store was asked again for the waiters of a key. */
  onPolled(queue: WaitQueue): void;
  /** A waiter that was queued waits no longer. May be called again. */
  onOver(waiter: Waiter): void;
}

/** Ends a wait with an error, unless it has ended. */
export type Refuse = (waiter: Waiter, error: Error) => void;

/** Builds the observer of all waits of one `Locks`. */
export type Observe = (refuse: Refuse) => WaitObserver;

/** What the holds of this process are told. */
export interface HolderListener {
  /** Another call took the key from this hold. */
  onTaken(holdId: string): void;
  /** Very many get a lock, some at a time. This process asks for the next ones when the promise has resolved. */
  onConvoy(id: string): Promise<void> | undefined;
  /** From here on, `onTaken` tells. What was taken before is not known. */
  onSubscribed(): void;
}
