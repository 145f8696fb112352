import type { StoreAccess } from '../client/access.ts';
import { type Granted, grantedByReply } from '../client/granted.ts';
import type { AcquireReply } from '../model/store.ts';
import type { Waiter, WaitQueue } from './local-queue.ts';
import { refusal } from './refusals.ts';
import type { StrategyListener, WaitStrategy } from './strategy.ts';

/** For a store with a queue: asks again, since messages get lost. The store grants, queues what it lost, and hands on. */
export class PollStrategy implements WaitStrategy {
  readonly #access: StoreAccess;
  readonly #listener: StrategyListener;

  constructor(access: StoreAccess, listener: StrategyListener) {
    this.#access = access;
    this.#listener = listener;
  }

  /** Jittered, and sooner if the holder's lease ends sooner. */
  readonly pause = ({ leaseRemainingMs }: WaitQueue): number => {
    const jitter = this.#access.clock.jitter();
    return Math.min(this.#access.settings.pollMs * (0.75 + jitter / 2), leaseRemainingMs + 5 + 20 * jitter);
  };

  /** If the oldest has come during the pause, its own pause has only begun: a key that changes hands fast needs no polls. */
  onDue(queue: WaitQueue): void {
    const { pauseLeftMs } = queue;
    if (pauseLeftMs > 0) queue.pollLater(pauseLeftMs);
    else void this.poll(queue);
  }

  /** One call for all waiters of a key: the oldest asks, and the reply names the process's open claims. */
  async poll(queue: WaitQueue): Promise<void> {
    const oldest = queue.oldest;
    if (oldest === undefined || queue.isPolling) return;
    queue.isPolling = true;
    const wasLost = (await this.ask(queue, oldest)) || (await this.#wasLostBefore(queue, oldest));
    // The store did not know the oldest: it has lost its data, and knows none of the others.
    if (wasLost) await Promise.all(queue.others(oldest).map((waiter) => this.ask(queue, waiter)));
    queue.isPolling = false;
    this.#listener.onPolled(queue);
    queue.pollLater();
  }

  /** Asks for a waiter. Returns whether the store had lost it. */
  ask(queue: WaitQueue, waiter: Waiter): Promise<boolean> {
    const time = { sent: this.#access.clock.now(), timeoutMs: this.#access.settings.pollMs };
    return new Promise((resolve) => {
      const onReply = (reply: AcquireReply): void => {
        const granted =
          reply.status === 'granted'
            ? grantedByReply(reply, time.sent, this.#access.clock.now(), waiter.task.leaseMs)
            : undefined;
        resolve(this.#onReply(queue, waiter, reply, granted));
      };
      this.#access.client.acquire('poll', waiter.task, time, onReply, (error) => {
        queue.fault = error;
        queue.isInDoubt = true;
        resolve(false);
      });
    });
  }

  /** After a poll that failed, and might have said that the oldest was lost, the next one is asked for as well. */
  async #wasLostBefore(queue: WaitQueue, oldest: Waiter): Promise<boolean> {
    if (!queue.isInDoubt || queue.fault !== undefined) return false;
    queue.isInDoubt = false;
    const [next] = queue.others(oldest);
    return next !== undefined && this.ask(queue, next);
  }

  #onReply(queue: WaitQueue, waiter: Waiter, reply: AcquireReply, granted: Granted | undefined): boolean {
    if (reply.status === 'granted') {
      // Over already: the next poll finds it lapsed and queues again.
      if (granted !== undefined) this.#listener.onGranted(waiter, granted);
      // Granted, but not from the queue: its place there was lost.
      return !reply.grant.isClaim;
    }
    if (reply.status === 'queued') {
      queue.updatePosition(waiter, reply);
      if (reply.isNew) this.#listener.onRequeued(waiter);
      return reply.isNew;
    }
    this.#listener.onFailed(waiter, refusal(waiter, reply, queue, this.#access.holdTimes));
    return false;
  }
}
