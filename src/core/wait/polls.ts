import type { RoundLimiter } from '../base/round-limiter.ts';
import { inBackground } from '../base/safely.ts';
import type { StoreAccess } from '../client/access.ts';
import { type Granted, grantedByReply } from '../client/granted.ts';
import type { AcquireReply } from '../model/store.ts';
import type { PollHost, Waiter, WaitQueue } from './local-queue.ts';
import type { WaitObserver } from './observer.ts';
import { refusal } from './refusals.ts';

/**
 * The result of a poll. `lost`: the store had lost a waiter. `behind`: messages about claims were lost, and there may be more
 * claims.
 */
type PollResult = 'lost' | 'behind' | undefined;

/** Callbacks of `Polls`. */
export interface PollListener extends Pick<WaitObserver, 'onRequeued' | 'onPolled'> {
  onGranted(waiter: Waiter, granted: Granted): void;
  onFailed(waiter: Waiter, error: Error): void;
}

/** Asks again for waiters, since messages get lost. The store then grants, hands off, and queues again what it had lost. */
export class Polls implements PollHost {
  readonly #access: StoreAccess;
  readonly #listener: PollListener;
  readonly #limiter: RoundLimiter;

  /** `limiter` is that of the grants on their way to waiters. */
  constructor(access: StoreAccess, listener: PollListener, limiter: RoundLimiter) {
    this.#access = access;
    this.#listener = listener;
    this.#limiter = limiter;
  }

  /** How long to wait until the next poll, in milliseconds: jittered, and sooner if the holder's lease ends sooner. */
  pauseMs({ leaseRemainingMs }: WaitQueue): number {
    const jitter = this.#access.clock.jitter();
    return Math.min(this.#access.settings.pollMs * (0.75 + jitter / 2), leaseRemainingMs + 5 + 20 * jitter);
  }

  /** Starts a new pause if the oldest waiter arrived during this one. A key that changes hands fast is never polled. */
  onDue(queue: WaitQueue): void {
    const { pauseLeftMs } = queue;
    if (pauseLeftMs > 0) queue.pollLater(pauseLeftMs);
    else inBackground(this.poll(queue));
  }

  /**
   * One call for all waiters of a key: the oldest asks, and the reply names the process's open claims. A store loses the
   * newest waiters or all of them, so the call also asks whether the newest is known.
   */
  async poll(queue: WaitQueue): Promise<void> {
    const { oldest, newest } = queue;
    if (oldest === undefined || queue.isPolling) return;
    queue.isPolling = true;
    const found = await this.#call(queue, oldest, newest === oldest ? undefined : newest);
    const hasLost = found === 'lost' || (await this.#hadLostBefore(queue, oldest));
    // In their order, in which the store queues again those that it had lost.
    if (hasLost) await Promise.all(queue.others(oldest).map((waiter) => this.ask(queue, waiter)));
    queue.isPolling = false;
    this.#listener.onPolled(queue);
    if (found !== 'behind') {
      queue.pollLater();
      return;
    }
    // After the claims of that reply were delivered.
    await this.#limiter.slot();
    await this.poll(queue);
  }

  async ask(queue: WaitQueue, waiter: Waiter): Promise<void> {
    await this.#call(queue, waiter);
  }

  #call(queue: WaitQueue, waiter: Waiter, newest?: Waiter): Promise<PollResult> {
    const { task } = waiter;
    waiter.isSettled = false;
    const time = { sent: this.#access.clock.now(), timeoutMs: this.#access.settings.pollMs };
    return new Promise((resolve) => {
      const onReply = (reply: AcquireReply): void => {
        waiter.isSettled = reply.mayArriveLater === false;
        const granted =
          reply.status === 'granted'
            ? grantedByReply(reply, time.sent, this.#access.clock.now(), task.leaseMs)
            : undefined;
        resolve(this.#onReply(queue, waiter, reply, granted));
      };
      const { key, category, request, leaseMs, waitMs } = task;
      const call = { key, category, request, leaseMs, waitMs, newest: newest?.task.request };
      this.#access.client.acquire(call, time, onReply, (error) => {
        // Once until the next reply: the acquire itself may still be granted.
        if (queue.fault === undefined) this.#access.client.reportBackground('poll', task, error);
        queue.fault = error;
        queue.isInDoubt = true;
        resolve(undefined);
      });
    });
  }

  /** Asks for the second waiter as well after a poll that failed: its reply might have shown that the oldest was lost. */
  async #hadLostBefore(queue: WaitQueue, oldest: Waiter): Promise<boolean> {
    if (!queue.isInDoubt || queue.fault !== undefined) return false;
    queue.isInDoubt = false;
    const [next] = queue.others(oldest);
    return next !== undefined && (await this.#call(queue, next)) === 'lost';
  }

  #onReply(queue: WaitQueue, waiter: Waiter, reply: AcquireReply, granted: Granted | undefined): PollResult {
    if (reply.status === 'granted') {
      // Expired already: the next poll queues again.
      if (granted !== undefined) this.#listener.onGranted(waiter, granted);
      // Granted, but not from the queue: its place there was lost.
      if (!reply.grant.isClaim) return 'lost';
      return reply.claims.length > 0 ? 'behind' : undefined;
    }
    if (reply.status === 'queued') {
      queue.updatePosition(waiter, reply);
      if (reply.isNew) this.#listener.onRequeued(waiter);
      return reply.isNew || reply.isNewestLost ? 'lost' : undefined;
    }
    this.#listener.onFailed(waiter, refusal(waiter, reply, queue, this.#access.holdTimes));
    return undefined;
  }
}
