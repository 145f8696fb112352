import { type Clock, elapsedMs, type Instant, lastedMs, outsideRequests, type Timer } from '../base/clock.ts';
import type { Granted, ReplyTimestamp } from '../client/granted.ts';
import type { LockStoreError } from '../model/errors.ts';
import type { LockEvent } from '../model/events.ts';
import type { AcquireReply, HoldRequest } from '../model/store.ts';
import type { Cancellation } from '../scope/cancellation.ts';
import { type Placed, retryAfterMs, Turns } from './retry-after.ts';

/** Who asked hears once what came of it: from inside the call that asked, where the store answers at once. */
export interface AcquireCallbacks {
  granted(granted: Granted): void;
  /** Not free, and not waited for: when another try is worth it. */
  refused(retryAfterMs: number): void;
  /** Nothing stays queued or held. */
  failed(error: Error): void;
}

/** On whose behalf somebody waits. */
export interface Work {
  readonly traceId: string;
  /** The owners whose work stands still meanwhile, as far as others may wait for them. */
  readonly blockedOwners: readonly string[];
}

/** What one acquire asks for. */
export interface Ask {
  readonly key: string;
  readonly request: HoldRequest;
  readonly leaseMs: number;
  /** 0 asks once and is not queued. */
  readonly waitMs: number;
  /** How long its first call may take at most, where that is a part of something longer. */
  readonly askMs?: number | undefined;
  readonly work: Work;
  readonly interruption: Cancellation;
  readonly asker: AcquireCallbacks;
}

/** An acquire on its way. Its state goes one way: pending, waiting, gone. */
export class Waiter implements Placed {
  readonly ask: Ask;
  readonly startedAt: Instant;
  state: 'pending' | 'waiting' | 'gone' = 'pending';
  /** Undoes what was begun with the wait: its timer, its listening, its place in the process's queue. */
  leave: (() => void) | undefined = undefined;
  /** Where it stands, from the reply that said so on. */
  queue: WaitQueue | undefined = undefined;
  place: Placed['place'] = undefined;

  constructor(ask: Ask, startedAt: Instant) {
    this.ask = ask;
    this.startedAt = startedAt;
  }

  /** What its first call has time for, beside what subscribing took; after a blocked event loop there may be none. */
  askableMs(now: Instant, storeTimeoutMs: number): number {
    const spentMs = elapsedMs(now, this.startedAt);
    const shareMs = storeTimeoutMs - Math.min(spentMs, storeTimeoutMs / 2);
    const { waitMs, askMs = Number.POSITIVE_INFINITY } = this.ask;
    return Math.min(shareMs, Math.min(askMs, Math.max(waitMs, storeTimeoutMs)) - spentMs);
  }
}

/** What a store says of a key that is not free. */
export type NotFree = Extract<AcquireReply, { leaseRemainingMs: number }>;

/** How long to wait until the next poll. */
export type Pause = (queue: WaitQueue) => number;

/** This process's waiters for one lock, the latest reply about it, and the timer of their common poll. */
export class WaitQueue {
  isPolling = false;
  /** What the last poll failed with; undefined once any call about the lock was answered since. */
  fault: LockStoreError | undefined;
  /** Whether a poll has failed, whose answer may have been that the store had lost its waiter. */
  isInDoubt = false;
  /** What was left of the holder's lease at the last answer. */
  leaseRemainingMs = 0;
  /** The hold id that was granted last: until it is renewed or released, replies tell of its claim again. */
  grantedId: string | undefined;
  readonly #clock: Clock;
  readonly #pause: Pause;
  readonly #onDue: (queue: WaitQueue) => void;
  readonly #waiters = new Set<Waiter>();
  readonly #turns = new Turns();
  #latest: ReplyTimestamp;
  #timer: Timer | undefined;
  #isWoken = false;

  constructor(clock: Clock, pause: Pause, latest: ReplyTimestamp, onDue: (queue: WaitQueue) => void) {
    this.#clock = clock;
    this.#pause = pause;
    this.#latest = latest;
    this.#onDue = onDue;
  }

  get size(): number {
    return this.#waiters.size;
  }

  get oldest(): Waiter | undefined {
    return this.#waiters.values().next().value;
  }

  /** From the oldest to the newest. */
  get waiters(): readonly Waiter[] {
    return [...this.#waiters];
  }

  others(than: Waiter): Waiter[] {
    return this.waiters.filter((waiter) => waiter !== than);
  }

  /** The reply about this lock whose call was sent last. */
  get latest(): ReplyTimestamp {
    return this.#latest;
  }

  /** The store has answered a call about this lock: who waits need not be the one who asked. */
  answered(seen: ReplyTimestamp): void {
    this.fault = undefined;
    if (seen.sent.monoMs >= this.#latest.sent.monoMs) this.#latest = seen;
  }

  join(waiter: Waiter, { leaseRemainingMs, position }: NotFree): void {
    this.#waiters.add(waiter);
    this.leaseRemainingMs = leaseRemainingMs;
    this.#turns.joined(waiter, position);
    if (this.#timer === undefined) this.pollLater();
  }

  /** A waiter was asked for again. */
  told(waiter: Waiter, { leaseRemainingMs, position }: NotFree): void {
    this.leaseRemainingMs = leaseRemainingMs;
    this.#turns.told(waiter, position);
  }

  /** A waiter was granted: its turn, where it did not overtake those before it with its owner. */
  came(waiter: Waiter): void {
    this.grantedId = waiter.ask.request.holdId;
    if (waiter === this.oldest) this.#turns.came(waiter);
  }

  /** For a waiter that gives up now. */
  retryAfterMs(waiter: Waiter): number {
    const { position } = this.#turns.seenBy(waiter);
    return retryAfterMs({ leaseRemainingMs: this.leaseRemainingMs, position, turnMs: this.turnMs(waiter) });
  }

  /** How long a turn lasted while a waiter waited; undefined where none was over. */
  turnMs(waiter: Waiter): number | undefined {
    const { over } = this.#turns.seenBy(waiter);
    return over === 0 ? undefined : lastedMs(this.#clock.now(), waiter.startedAt) / over;
  }

  /** Answers whether nobody waits any more; the timer is cleared then. */
  leave(waiter: Waiter): boolean {
    this.#waiters.delete(waiter);
    if (this.#waiters.size > 0) return false;
    this.#timer?.cancel();
    return true;
  }

  /** Starts the timer of the next poll. */
  pollLater(): void {
    this.#startTimer(this.#pause(this));
  }

  /** Starts it for a poll after `ms`, where none is due for the same reason. */
  pollSoon(ms: number): void {
    if (this.#isWoken) return;
    this.#startTimer(ms);
    this.#isWoken = true;
  }

  #startTimer(ms: number): void {
    this.#timer?.cancel();
    this.#isWoken = false;
    if (this.#waiters.size === 0) return;
    const due = (): void => {
      this.#isWoken = false;
      this.#onDue(this);
    };
    this.#timer = outsideRequests(() => this.#clock.after(ms, due));
  }
}

/** By lock: its queue, as this process sees it, while anybody waits. */
export class WaitQueues {
  readonly #clock: Clock;
  readonly #pause: Pause;
  readonly #onDue: (queue: WaitQueue) => void;
  readonly #queues = new Map<string, WaitQueue>();

  constructor(clock: Clock, pause: Pause, onDue: (queue: WaitQueue) => void) {
    this.#clock = clock;
    this.#pause = pause;
    this.#onDue = onDue;
  }

  get all(): Iterable<WaitQueue> {
    return this.#queues.values();
  }

  get(id: string): WaitQueue | undefined {
    return this.#queues.get(id);
  }

  /** A reply said that the waiter is queued. */
  join(waiter: Waiter, sent: Instant, reply: NotFree): WaitQueue {
    const { id } = waiter.ask.request;
    let queue = this.#queues.get(id);
    if (queue === undefined) {
      queue = new WaitQueue(this.#clock, this.#pause, { sent, nowMs: reply.nowMs }, this.#onDue);
      this.#queues.set(id, queue);
    }
    queue.join(waiter, reply);
    waiter.queue = queue;
    return queue;
  }

  leave(queue: WaitQueue, waiter: Waiter): void {
    if (queue.leave(waiter)) this.#queues.delete(waiter.ask.request.id);
  }
}

/** What every event about a waiter says. */
export function eventOf({ ask: { key, request } }: Waiter): LockEvent {
  return { key, owner: request.owner, holdId: request.holdId };
}
