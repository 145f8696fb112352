import {
  type Clock,
  elapsedMs,
  type Instant,
  lastedMs,
  maxTimerMs,
  outsideRequests,
  type Timer,
} from '../base/clock.ts';
import type { ReplyTimestamp } from '../client/granted.ts';
import type { ReleaseTarget } from '../client/releases.ts';
import type { LockStoreError } from '../model/errors/failures.ts';
import type { LockHolder } from '../model/errors/lock-holder.ts';
import type { AcquireReply } from '../model/store.ts';
import { type Positioned, QueueProgress, retryAfterMs, type Turn } from './retry-after.ts';
import type { AcquireTask } from './task.ts';

/** An acquire that has not ended. Its state goes one way: pending, waiting, gone. */
export class Waiter implements Positioned {
  readonly task: AcquireTask;
  /** When it turned to the store: when it started, unless it waited for a branch before. */
  readonly askedAt: Instant;
  /** Whether it may wait. False if too many others do: the key may still be free, or held by its owner. */
  readonly mayWait: boolean;
  state: 'pending' | 'waiting' | 'gone' = 'pending';
  /** Its queue, once a reply said that it is queued. */
  queue: WaitQueue | undefined = undefined;
  turn: Turn | undefined = undefined;
  /** Whether an acquire was sent that may have had an effect. */
  wasSent = false;
  /** Whether each of its acquires got a reply, and no copy of one can reach the store later. */
  isSettled = false;
  /** Ends the acquire in time. */
  timer: Timer | undefined = undefined;
  /** Ends what `listen` of its task began. */
  unlisten: (() => void) | undefined = undefined;

  constructor(task: AcquireTask, askedAt: Instant, mayWait: boolean) {
    this.task = task;
    this.askedAt = askedAt;
    this.mayWait = mayWait;
  }

  /**
   * How long it waits for its first reply, from when it asked. After a wait for a branch, that is what is left of `waitMs`.
   * Otherwise only a batch sets a limit; the deadline of the store call ends it anyway.
   */
  get timeLeftMs(): number {
    const { waitMs, startedAt, firstCallTimeoutMs = Number.POSITIVE_INFINITY } = this.task;
    const hasWaited = this.askedAt !== startedAt && waitMs > 0;
    const endMs = hasWaited ? Math.min(waitMs, firstCallTimeoutMs) : firstCallTimeoutMs;
    return endMs - elapsedMs(this.askedAt, startedAt);
  }

  /** Calls `onDue` in time. Keeps the process alive, even in an endless wait. Cleared when the waiter is gone. */
  startTimer(clock: Clock, leftMs: number, onDue: (waiter: Waiter) => void): void {
    this.timer?.cancel();
    const onTimer = (): void => {
      if (leftMs > maxTimerMs) this.startTimer(clock, leftMs - maxTimerMs, onDue);
      else onDue(this);
    };
    this.timer = clock.after(Math.min(leftMs, maxTimerMs), onTimer, true);
  }

  /** What to release when it gives up: whatever went wrong, the store may have queued it or granted the key. */
  leftAfter(livenessMs: number): ReleaseTarget {
    const { key, category, request, leaseMs } = this.task;
    return { key, category, request, leaseMs: Math.max(leaseMs, livenessMs), isSettled: this.isSettled };
  }
}

/** The holder of a key, and when the store was asked for it. */
export interface HolderLook {
  readonly at: Instant;
  readonly holder: Promise<LockHolder | undefined>;
}

/** A store's reply for a key that is not free. */
export type NotFree = Extract<AcquireReply, { leaseRemainingMs: number }>;

/** Says when a queue polls, and polls it. */
export interface PollHost {
  /** How long to wait until the next poll, in milliseconds. */
  pauseMs(queue: WaitQueue): number;
  /** Called after that pause. */
  onDue(queue: WaitQueue): void;
}

/** This process's waiters for one lock, the latest reply about it, and the timer of their common poll. */
export class WaitQueue {
  isPolling = false;
  /** The error of the last poll; undefined after a reply to any later call about the lock. */
  fault: LockStoreError | undefined;
  /** Whether a poll has failed since: its reply might have shown that the store had lost the waiter. */
  isInDoubt = false;
  /** What remained of the holder's lease at the last reply. */
  leaseRemainingMs = 0;
  /** The last look at the holder, for waiters that gave up. */
  holderLook: HolderLook | undefined;
  /** The hold id that was granted last: until it is renewed or released, replies name its claim again. */
  grantedId: string | undefined;
  readonly #clock: Clock;
  readonly #polls: PollHost;
  readonly #waiters = new Set<Waiter>();
  #newest: Waiter | undefined;
  readonly #progress = new QueueProgress();
  #latest: ReplyTimestamp;
  #timer: Timer | undefined;
  /** The pause that was begun last. */
  #pauseMs = 0;

  constructor(clock: Clock, polls: PollHost, latest: ReplyTimestamp) {
    this.#clock = clock;
    this.#polls = polls;
    this.#latest = latest;
  }

  get size(): number {
    return this.#waiters.size;
  }

  get oldest(): Waiter | undefined {
    return this.#waiters.values().next().value;
  }

  /** Cached, since each poll needs it. */
  get newest(): Waiter | undefined {
    this.#newest ??= this.waiters.at(-1);
    return this.#newest;
  }

  /** From the oldest to the newest. */
  get waiters(): readonly Waiter[] {
    return [...this.#waiters];
  }

  others(than: Waiter): Waiter[] {
    return this.waiters.filter((other) => other !== than);
  }

  /** The reply about this lock whose call was sent last. */
  get latest(): ReplyTimestamp {
    return this.#latest;
  }

  /** Records a reply to any call about this lock. */
  onReply(seen: ReplyTimestamp): void {
    this.fault = undefined;
    if (seen.sent.monoMs >= this.#latest.sent.monoMs) this.#latest = seen;
  }

  join(waiter: Waiter, { leaseRemainingMs, position }: NotFree): void {
    this.#waiters.add(waiter);
    this.#newest = waiter;
    this.leaseRemainingMs = leaseRemainingMs;
    this.#progress.join(waiter, position);
    if (this.#timer === undefined) this.pollLater();
  }

  /** Records the reply to a poll for a waiter. */
  updatePosition(waiter: Waiter, { leaseRemainingMs, position }: NotFree): void {
    this.leaseRemainingMs = leaseRemainingMs;
    this.#progress.updatePosition(waiter, position);
  }

  /** Records that a waiter was granted. It was its turn, unless it overtook others together with its owner. */
  turnReached(waiter: Waiter): void {
    this.grantedId = waiter.task.request.holdId;
    if (waiter === this.oldest) this.#progress.turnReached(waiter);
  }

  /** When a waiter that gives up now should try again. `typicalMs` is how long a hold lasts, if that is known. */
  retryAfterMs(waiter: Waiter, typicalMs: number | undefined): number {
    const { position } = this.#progress.seenBy(waiter);
    // If no turn ended while it waited, the present one is at least that long.
    const presentMs = typicalMs && Math.max(typicalMs, lastedMs(this.#clock.now(), waiter.task.startedAt));
    const turnMs = this.turnMs(waiter) ?? presentMs;
    return retryAfterMs({ leaseRemainingMs: this.leaseRemainingMs, position, turnMs });
  }

  /** How long a turn lasted while a waiter waited; undefined if none ended. */
  turnMs(waiter: Waiter): number | undefined {
    const { endedTurns } = this.#progress.seenBy(waiter);
    return endedTurns === 0 ? undefined : lastedMs(this.#clock.now(), waiter.task.startedAt) / endedTurns;
  }

  /** Returns whether it was the last waiter; the timer is cleared then. */
  leave(waiter: Waiter): boolean {
    this.#waiters.delete(waiter);
    if (this.#newest === waiter) this.#newest = undefined;
    if (this.#waiters.size > 0) return false;
    this.#timer?.cancel();
    return true;
  }

  /** How much is left of a pause that began with the oldest waiter. */
  get pauseLeftMs(): number {
    const startedAt = this.oldest?.task.startedAt;
    const pauseMs = Math.min(this.#pauseMs, this.#polls.pauseMs(this));
    return startedAt === undefined ? 0 : pauseMs - lastedMs(this.#clock.now(), startedAt);
  }

  /** Starts the timer of the next poll: after a new pause, or after what is left of one. */
  pollLater(leftMs?: number): void {
    if (leftMs === undefined) this.#pauseMs = this.#polls.pauseMs(this);
    this.#timer?.cancel();
    if (this.#waiters.size === 0) return;
    const ms = leftMs ?? this.#pauseMs;
    this.#timer = outsideRequests(() => this.#clock.after(ms, () => this.#polls.onDue(this)));
  }
}

/** The queues in which waiters of this process stand, by lock. */
export class WaitQueues {
  readonly #clock: Clock;
  readonly #polls: PollHost;
  readonly #queues = new Map<string, WaitQueue>();

  constructor(clock: Clock, polls: PollHost) {
    this.#clock = clock;
    this.#polls = polls;
  }

  get all(): Iterable<WaitQueue> {
    return this.#queues.values();
  }

  get(id: string): WaitQueue | undefined {
    return this.#queues.get(id);
  }

  /** Adds a waiter that the store has queued. */
  join(waiter: Waiter, sent: Instant, reply: NotFree): void {
    const { id } = waiter.task.request;
    let queue = this.#queues.get(id);
    if (queue === undefined) {
      queue = new WaitQueue(this.#clock, this.#polls, { sent, nowMs: reply.nowMs });
      this.#queues.set(id, queue);
    }
    queue.join(waiter, reply);
    waiter.queue = queue;
  }

  leave(queue: WaitQueue, waiter: Waiter): void {
    if (queue.leave(waiter)) this.#queues.delete(waiter.task.request.id);
  }
}
