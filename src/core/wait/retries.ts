import { asMicrotask, type Instant } from '../base/clock.ts';
import { inBackground } from '../base/safely.ts';
import type { StoreAccess } from '../client/access.ts';
import { grantedByReply } from '../client/granted.ts';
import type { LockStoreError } from '../model/errors.ts';
import type { AcquireReply } from '../model/store.ts';
import type { Waiter, WaitQueue } from './local-queue.ts';
import { refusal } from './refusals.ts';
import type { StrategyListener, WaitStrategy } from './strategy.ts';

const firstPauseMs = 50;
const minPauseMs = 5;

/** How the retries for one lock stand. */
interface RetryState {
  /** How many tries were refused or failed, one after the other. */
  refusals: number;
  /** Whether the key was said to be free since the last try was sent. */
  wasFreed: boolean;
  isInspecting: boolean;
  /** Whether a newcomer arrived after the holders were asked for. */
  isInspectDue: boolean;
}

/**
 * For a store without a queue: tries again, after a pause with full jitter that grows with each try, and soon after the key
 * was said to be free. Only the oldest waiter of a lock tries, so that the waiters of one process keep their order; between
 * processes there is none. Another waiter tries only if its owner holds the key: re-entry overtakes.
 */
export class RetryStrategy implements WaitStrategy {
  readonly #access: StoreAccess;
  readonly #listener: StrategyListener;
  readonly #states = new WeakMap<WaitQueue, RetryState>();

  constructor(access: StoreAccess, listener: StrategyListener) {
    this.#access = access;
    this.#listener = listener;
  }

  /** Not beyond the end of the holder's lease, if that is known. */
  readonly pause = (queue: WaitQueue): number => {
    const jitter = this.#access.clock.jitter();
    const maxMs = Math.min(this.#access.settings.pollMs, firstPauseMs * 2 ** this.#stateOf(queue).refusals);
    const leaseRemainingMs = queue.leaseRemainingMs > 0 ? queue.leaseRemainingMs + 10 * jitter : maxMs;
    return Math.max(minPauseMs, Math.min(maxMs * jitter, leaseRemainingMs));
  };

  /**
   * A newcomer stands behind the waiters of its process, and takes over the last reply to them. If its owner holds the key,
   * the inspection finds that out.
   */
  joinLine(queue: WaitQueue | undefined, onReply: (reply: AcquireReply, asOf: Instant) => void): boolean {
    if (queue === undefined) return false;
    const { sent, nowMs } = queue.latest;
    asMicrotask(() => {
      const { leaseRemainingMs } = queue;
      onReply({ status: 'refused', leaseRemainingMs, position: 0, nowMs, claims: [] }, sent);
      this.#enterWithHolders(queue);
    });
    return true;
  }

  /** A refused acquire waits here, unless too many do. */
  asQueued(reply: AcquireReply, queue: WaitQueue | undefined): AcquireReply {
    if (reply.status !== 'refused') return reply;
    const position = queue?.size ?? 0;
    if (position >= this.#access.settings.maxWaitersPerKey) return { ...reply, status: 'full', position };
    return { ...reply, status: 'queued', isNew: true, position };
  }

  onDue(queue: WaitQueue): void {
    inBackground(this.poll(queue));
  }

  /** The oldest tries; the waiters of its owner are granted with it. */
  async poll(queue: WaitQueue): Promise<void> {
    const { oldest } = queue;
    if (oldest === undefined || queue.isPolling) return;
    const state = this.#stateOf(queue);
    queue.isPolling = true;
    state.wasFreed = false;
    if (await this.ask(queue, oldest)) {
      state.refusals = 0;
      this.#askForOwners(queue, new Set([oldest.task.request.owner]));
    } else {
      state.refusals += 1;
      if (queue.fault === undefined) this.#enterWithHolders(queue);
    }
    queue.isPolling = false;
    if (state.wasFreed) this.onFreed(queue);
    else queue.pollLater();
  }

  /** Tries for a waiter. Returns whether it was granted. */
  ask(queue: WaitQueue, waiter: Waiter): Promise<boolean> {
    const time = { sent: this.#access.clock.now(), timeoutMs: this.#access.settings.storeTimeoutMs };
    return new Promise((resolve) => {
      const onReply = (reply: AcquireReply): void => resolve(this.#onReply(queue, waiter, time.sent, reply));
      this.#access.client.acquire(waiter.task, time, onReply, (error) => {
        // Once until a call is answered again: the acquire itself may still be granted.
        if (queue.fault === undefined) this.#access.client.reportBackground('poll', waiter.task, error);
        queue.fault = error;
        // Nothing is known of the holder: only the pause counts.
        queue.leaseRemainingMs = 0;
        resolve(false);
      });
    });
  }

  /** Many nodes may say that the key is free, one after the other: one try should see them all. */
  onFreed(queue: WaitQueue | undefined): void {
    if (queue === undefined) return;
    if (queue.isPolling) this.#stateOf(queue).wasFreed = true;
    else queue.pollSoon(1 + 9 * this.#access.clock.jitter());
  }

  /** Lets the waiters try whose owner holds the key. If it is called meanwhile, it inspects once more. */
  #enterWithHolders(queue: WaitQueue): void {
    const state = this.#stateOf(queue);
    state.isInspectDue = state.isInspecting;
    if (state.isInspecting) return;
    const { oldest } = queue;
    if (oldest === undefined || queue.size === 1) return;
    state.isInspecting = true;
    const { key, category, request } = oldest.task;
    this.#access.client
      .inspect({ key, category, id: request.id })
      .then(({ holds }) => this.#askForOwners(queue, new Set(holds.map(({ owner }) => owner))))
      .catch((error: LockStoreError) => {
        queue.fault = error;
      })
      .finally(() => {
        state.isInspecting = false;
        if (state.isInspectDue) this.#enterWithHolders(queue);
      });
  }

  #onReply(queue: WaitQueue, waiter: Waiter, sent: Instant, reply: AcquireReply): boolean {
    if (reply.status === 'granted') {
      const granted = grantedByReply(reply, sent, this.#access.clock.now(), waiter.task.leaseMs);
      // Over already: the next try is granted again.
      if (granted !== undefined) this.#listener.onGranted(waiter, granted);
      return granted !== undefined;
    }
    if (reply.status === 'refused') queue.leaseRemainingMs = reply.leaseRemainingMs;
    else if (reply.status !== 'queued')
      this.#listener.onFailed(waiter, refusal(waiter, reply, queue, this.#access.holdTimes));
    return false;
  }

  #askForOwners(queue: WaitQueue, owners: ReadonlySet<string>): void {
    for (const waiter of queue.waiters)
      if (owners.has(waiter.task.request.owner)) inBackground(this.ask(queue, waiter));
  }

  #stateOf(queue: WaitQueue): RetryState {
    let state = this.#states.get(queue);
    if (state === undefined) {
      state = { refusals: 0, wasFreed: false, isInspecting: false, isInspectDue: false };
      this.#states.set(queue, state);
    }
    return state;
  }
}
