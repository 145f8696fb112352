import { inBackground } from '../base/safely.ts';
import type { Turns } from '../base/turns.ts';
import type { StoreAccess } from '../client/access.ts';
import { type Granted, grantedByReply } from '../client/granted.ts';
import type { AcquireReply } from '../model/store.ts';
import type { Waiter, WaitQueue } from './local-queue.ts';
import { refusal } from './refusals.ts';

/**
 * What a poll has found out: that the store had lost a waiter; or that messages were lost which told of several claims, so
 * that it may have more to tell.
 */
type PollResult = 'lost' | 'behind' | undefined;

/** Hears what a poll has found out about a waiter. */
export interface PollListener {
  onGranted(waiter: Waiter, granted: Granted): void;
  onFailed(waiter: Waiter, error: Error): void;
  /** The store had lost a waiter, and has queued it anew. */
  onRequeued(waiter: Waiter): void;
  /** The store was asked again for the waiters of a key. */
  onPolled(queue: WaitQueue): void;
}

/** Asks again for waiters, since messages get lost. The store grants, queues what it lost, and hands on. */
export class Polls {
  readonly #access: StoreAccess;
  readonly #listener: PollListener;
  readonly #turns: Turns;

  /** `turns` are those of grants on their way to their waiters. */
  constructor(access: StoreAccess, listener: PollListener, turns: Turns) {
    this.#access = access;
    this.#listener = listener;
    this.#turns = turns;
  }

  /** How long to wait until the next poll, in milliseconds: jittered, and sooner if the holder's lease ends sooner. */
  readonly pause = ({ leaseRemainingMs }: WaitQueue): number => {
    const jitter = this.#access.clock.jitter();
    return Math.min(this.#access.settings.pollMs * (0.75 + jitter / 2), leaseRemainingMs + 5 + 20 * jitter);
  };

  /** If the oldest has come during the pause, its own pause has only begun: a key that changes hands fast needs no polls. */
  onDue(queue: WaitQueue): void {
    const { pauseLeftMs } = queue;
    if (pauseLeftMs > 0) queue.pollLater(pauseLeftMs);
    else inBackground(this.poll(queue));
  }

  /**
   * One call for all waiters of a key: the oldest asks, and the reply names the process's open claims. What the store loses
   * are the newest waiters or all of them, so the call also asks whether the newest is known.
   */
  async poll(queue: WaitQueue): Promise<void> {
    const { oldest, newest } = queue;
    if (oldest === undefined || queue.isPolling) return;
    queue.isPolling = true;
    const found = await this.#call(queue, oldest, newest === oldest ? undefined : newest);
    const hasLost = found === 'lost' || (await this.#hadLostBefore(queue, oldest));
    // In their order: those that the store lost are queued anew in it.
    if (hasLost) await Promise.all(queue.others(oldest).map((waiter) => this.ask(queue, waiter)));
    queue.isPolling = false;
    this.#listener.onPolled(queue);
    if (found !== 'behind') {
      queue.pollLater();
      return;
    }
    // The waiters of the claims that it named have theirs before.
    await this.#turns.next();
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
        // Once until a call is answered again: the acquire itself may still be granted.
        if (queue.fault === undefined) this.#access.client.reportBackground('poll', task, error);
        queue.fault = error;
        queue.isInDoubt = true;
        resolve(undefined);
      });
    });
  }

  /** After a poll that failed, and might have said that the oldest was lost, the next one is asked for as well. */
  async #hadLostBefore(queue: WaitQueue, oldest: Waiter): Promise<boolean> {
    if (!queue.isInDoubt || queue.fault !== undefined) return false;
    queue.isInDoubt = false;
    const [next] = queue.others(oldest);
    return next !== undefined && (await this.#call(queue, next)) === 'lost';
  }

  #onReply(queue: WaitQueue, waiter: Waiter, reply: AcquireReply, granted: Granted | undefined): PollResult {
    if (reply.status === 'granted') {
      // Over already: the next poll finds it lapsed and queues again.
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
