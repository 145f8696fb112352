import type { Instant } from '../base/clock.ts';
import type { Granted } from '../client/granted.ts';
import type { AcquireReply } from '../model/store.ts';
import type { Waiter, WaitQueue } from './local-queue.ts';

/**
 * How the waiters of one process learn that it is their turn, and what they do meanwhile. A store with a queue is polled in
 * case a message got lost; a store without one is asked again and again.
 */
export interface WaitStrategy {
  /** How long to wait until the next poll, in milliseconds. */
  readonly pause: (queue: WaitQueue) => number;
  /** Called when a pause is over: polls, or waits on if a poll would show nothing new. */
  onDue(queue: WaitQueue): void;
  /** Asks the store once for all waiters of a key. */
  poll(queue: WaitQueue): Promise<void>;
  /** Asks for one waiter. */
  ask(queue: WaitQueue, waiter: Waiter): Promise<unknown>;
  /**
   * Lets a newcomer stand behind the waiters of this process without asking the store, if the strategy does so: `onReply`
   * is called later. Returns whether it does.
   */
  joinLine?(queue: WaitQueue | undefined, onReply: (reply: AcquireReply, asOf: Instant) => void): boolean;
  /** The reply to a first call, as a store with a queue would have given it. */
  asQueued?(reply: AcquireReply, queue: WaitQueue | undefined): AcquireReply;
  /** Called when the store says that the key of this queue is free. */
  onFreed?(queue: WaitQueue | undefined): void;
}

/** Hears what a strategy has found out about a waiter. */
export interface StrategyListener {
  onGranted(waiter: Waiter, granted: Granted): void;
  onFailed(waiter: Waiter, error: Error): void;
  /** The store had lost a waiter, and has queued it anew. */
  onRequeued(waiter: Waiter): void;
  /** The store was asked again for the waiters of a key. */
  onPolled(queue: WaitQueue): void;
}
