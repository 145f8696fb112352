import { asMicrotask, type Instant } from '../base/clock.ts';
import { grantedByReply } from '../client/granted.ts';
import { type Asks, refusal } from '../client/requests.ts';
import type { AcquireReply, InspectReply } from '../model/store.ts';
import type { Base } from '../runtime/runtime.ts';
import type { Pause, Waiter, WaitQueue } from './local-queue.ts';
import type { PollListener } from './polls.ts';

const firstPauseMs = 50;
const shortestPauseMs = 5;

/** How the tries for one lock stand. */
interface Course {
  /** How many were refused or failed, one after the other. */
  refusals: number;
  /** Whether the key was said to be free since the last one was sent. */
  wasFreed: boolean;
  isLooking: boolean;
  /** Whether somebody came after the look at the holders was sent. */
  isLookDue: boolean;
}

/**
 * Asks for waiters of a store without a queue, time after time: after a pause with full jitter that grows with each try,
 * and soon after the key was said to be free. Only the oldest waiter of a lock asks, so that those of one process have
 * their order; between processes there is none. Others ask only where their owner holds the key: re-entry overtakes.
 */
export class Tries {
  readonly #base: Base;
  readonly #asks: Asks;
  readonly #listener: PollListener;
  readonly #courses = new WeakMap<WaitQueue, Course>();

  constructor(base: Base, asks: Asks, listener: PollListener) {
    this.#base = base;
    this.#asks = asks;
    this.#listener = listener;
  }

  /** Not beyond the end of the holder's lease, where that is known. */
  readonly pause: Pause = (queue) => {
    const jitter = this.#base.clock.jitter();
    const mostMs = Math.min(this.#base.settings.pollMs, firstPauseMs * 2 ** this.#courseOf(queue).refusals);
    const leaseRemainingMs = queue.leaseRemainingMs > 0 ? queue.leaseRemainingMs + 10 * jitter : mostMs;
    return Math.max(shortestPauseMs, Math.min(mostMs * jitter, leaseRemainingMs));
  };

  /**
   * For a newcomer where others of this process wait already: nobody overtakes them, and what they were told last goes for
   * it, too. Should its owner hold the key, the look finds that out.
   */
  join(line: WaitQueue, onReply: (reply: AcquireReply, asOf: Instant) => void): void {
    const { sent, nowMs } = line.latest;
    asMicrotask(() => {
      onReply({ status: 'refused', leaseRemainingMs: line.leaseRemainingMs, position: 0, nowMs, claims: [] }, sent);
      this.look(line);
    });
  }

  /** The reply as a store with a queue would have given it: who is refused waits, unless too many do. */
  inLine(reply: AcquireReply, line: WaitQueue | undefined): AcquireReply {
    if (reply.status !== 'refused') return reply;
    const position = line?.size ?? 0;
    if (position >= this.#base.settings.maxWaitersPerKey) return { ...reply, status: 'full', position };
    return { ...reply, status: 'queued', isNew: true, position };
  }

  /** The oldest asks; those of its owner are granted with it. */
  async poll(queue: WaitQueue): Promise<void> {
    const { oldest } = queue;
    if (oldest === undefined || queue.isPolling) return;
    const course = this.#courseOf(queue);
    queue.isPolling = true;
    course.wasFreed = false;
    if (await this.ask(queue, oldest)) {
      course.refusals = 0;
      this.#enter(queue, new Set([oldest.ask.request.owner]));
    } else {
      course.refusals += 1;
      if (queue.fault === undefined) this.look(queue);
    }
    queue.isPolling = false;
    if (course.wasFreed) this.freed(queue);
    else queue.pollLater();
  }

  /** Asks for a waiter; answers whether it was granted. */
  ask(queue: WaitQueue, waiter: Waiter): Promise<boolean> {
    const sent = this.#base.clock.now();
    return new Promise((resolve) => {
      const onReply = (reply: AcquireReply): void => resolve(this.#answered(queue, waiter, sent, reply));
      this.#asks.send('poll', waiter, sent, this.#base.settings.storeTimeoutMs, onReply, (error) => {
        queue.fault = error;
        // Nothing is known of the holder: only the pause counts.
        queue.leaseRemainingMs = 0;
        resolve(false);
      });
    });
  }

  /** The key was said to be free. Many nodes may say so, one after the other: one try is meant to see them all. */
  freed(queue: WaitQueue | undefined): void {
    if (queue === undefined) return;
    if (queue.isPolling) this.#courseOf(queue).wasFreed = true;
    else queue.pollSoon(1 + 9 * this.#base.clock.jitter());
  }

  /** Lets those ask whose owner holds the key. Looks that are wanted while one is on its way are one more. */
  look(queue: WaitQueue): void {
    const course = this.#courseOf(queue);
    course.isLookDue = course.isLooking;
    if (course.isLooking) return;
    const { oldest } = queue;
    if (oldest === undefined || queue.size === 1) return;
    course.isLooking = true;
    const over = (): void => {
      course.isLooking = false;
      if (course.isLookDue) this.look(queue);
    };
    const onReply = ({ holds }: InspectReply): void => {
      this.#enter(queue, new Set(holds.map(({ owner }) => owner)));
      over();
    };
    this.#asks.look(oldest, this.#base.clock.now(), this.#base.settings.storeTimeoutMs, onReply, (error) => {
      queue.fault = error;
      over();
    });
  }

  #answered(queue: WaitQueue, waiter: Waiter, sent: Instant, reply: AcquireReply): boolean {
    if (reply.status === 'granted') {
      const granted = grantedByReply(reply, sent, this.#base.clock.now(), waiter.ask.leaseMs);
      // Over already: the next try is granted anew.
      if (granted !== undefined) this.#listener.granted(waiter, granted);
      return granted !== undefined;
    }
    if (reply.status === 'refused') queue.leaseRemainingMs = reply.leaseRemainingMs;
    else if (reply.status !== 'queued') this.#listener.failed(waiter, refusal(waiter, reply, queue));
    return false;
  }

  #enter(queue: WaitQueue, owners: ReadonlySet<string>): void {
    for (const waiter of queue.waiters) if (owners.has(waiter.ask.request.owner)) void this.ask(queue, waiter);
  }

  #courseOf(queue: WaitQueue): Course {
    let course = this.#courses.get(queue);
    if (course === undefined) {
      course = { refusals: 0, wasFreed: false, isLooking: false, isLookDue: false };
      this.#courses.set(queue, course);
    }
    return course;
  }
}
