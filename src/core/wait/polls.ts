import type { Instant } from '../base/clock.ts';
import { type Granted, grantedByReply } from '../client/granted.ts';
import { type Asks, refusal } from '../client/requests.ts';
import type { AcquireReply } from '../model/store.ts';
import type { Base } from '../runtime/runtime.ts';
import type { Pause, Waiter, WaitQueue } from './local-queue.ts';

/** Who is told what a poll, or a try, has found out about a waiter. */
export interface PollListener {
  granted(waiter: Waiter, granted: Granted): void;
  failed(waiter: Waiter, error: Error): void;
  /** It, or another of its key, was asked for again. */
  polled(waiter: Waiter): void;
}

/** Asks for waiters again, since messages get lost: the store grants, queues anew what it does not know, and hands on. */
export class Polls {
  readonly #base: Base;
  readonly #asks: Asks;
  readonly #listener: PollListener;

  constructor(base: Base, asks: Asks, listener: PollListener) {
    this.#base = base;
    this.#asks = asks;
    this.#listener = listener;
  }

  /** Jittered, and sooner where the holder's lease ends sooner. */
  readonly pause: Pause = ({ leaseRemainingMs }) => {
    const jitter = this.#base.clock.jitter();
    return Math.min(this.#base.settings.pollMs * (0.75 + jitter / 2), leaseRemainingMs + 5 + 20 * jitter);
  };

  /** One call for all waiters of a key: the oldest asks, and the reply names the process's open claims. */
  async poll(queue: WaitQueue): Promise<void> {
    const oldest = queue.oldest;
    if (oldest === undefined || queue.isPolling) return;
    queue.isPolling = true;
    const wasLost = (await this.ask(queue, oldest)) || (await this.#wasLostBefore(queue, oldest));
    // The store did not know the oldest: it has lost its data, and knows none of the others.
    if (wasLost) await Promise.all(queue.others(oldest).map((waiter) => this.ask(queue, waiter)));
    queue.isPolling = false;
    for (const waiter of queue.waiters) this.#listener.polled(waiter);
    queue.pollLater();
  }

  /** After a poll that failed, whose answer may have been that the oldest was lost, the next one is asked for as well. */
  async #wasLostBefore(queue: WaitQueue, oldest: Waiter): Promise<boolean> {
    if (!queue.isInDoubt || queue.fault !== undefined) return false;
    queue.isInDoubt = false;
    const [next] = queue.others(oldest);
    return next !== undefined && this.ask(queue, next);
  }

  /** Asks for a waiter; answers whether the store had lost it. */
  ask(queue: WaitQueue, waiter: Waiter): Promise<boolean> {
    const sent = this.#base.clock.now();
    return new Promise((resolve) => {
      const onReply = (reply: AcquireReply): void => resolve(this.#answered(queue, waiter, sent, reply));
      this.#asks.send('poll', waiter, sent, this.#base.settings.pollMs, onReply, (error) => {
        queue.fault = error;
        queue.isInDoubt = true;
        resolve(false);
      });
    });
  }

  #answered(queue: WaitQueue, waiter: Waiter, sent: Instant, reply: AcquireReply): boolean {
    if (reply.status === 'granted') {
      const granted = grantedByReply(reply, sent, this.#base.clock.now(), waiter.ask.leaseMs);
      // Over already: the next poll finds it lapsed and queues again.
      if (granted !== undefined) this.#listener.granted(waiter, granted);
      // Granted, but not from the queue: its place there was lost.
      return !reply.grant.isClaim;
    }
    if (reply.status === 'queued') {
      queue.told(waiter, reply);
      return reply.isNew;
    }
    this.#listener.failed(waiter, refusal(waiter, reply, queue));
    return false;
  }
}
