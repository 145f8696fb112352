import { type Clock, elapsedMs, type Instant } from './clock.ts';
import { warnOnce } from './context.ts';
import { LockLimitError, LockStoreError, LocksClosedError, LockTimeoutError } from './errors.ts';
import type { Events } from './events.ts';
import { type Granted, grantedByMessage, grantedByReply, type Seen } from './granted.ts';
import type { LocksSettings } from './options.ts';
import type { Releases } from './releases.ts';
import type { AcquireReply, HoldRequest, LockStore, StoreGrant, StoreMessage } from './store/store.ts';
import type { StoreCalls } from './store-calls.ts';
import { Subscription } from './subscription.ts';
import { eventOf, type Refused, type Waiter, WaitQueue, type WaitTerms } from './wait-queue.ts';

type Reply = Pick<AcquireReply, 'nowMs' | 'claims'>;
type Queued = Extract<AcquireReply, { status: 'queued' }>;

/**
 * Gets grants from the store: at once, or by standing in its queue. A waiter's state goes one way, pending, waiting,
 * gone; a grant for any other state changes nothing, and what may be left in the store is given back.
 */
export class Waiting {
  readonly #store: LockStore;
  readonly #calls: StoreCalls;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #settings: LocksSettings;
  readonly #livenessMs: number;
  readonly #releases: Releases;
  readonly #onLost: (holdId: string) => void;
  readonly #subscription: Subscription;
  /** By hold id: asked for, and not yet answered for good. */
  readonly #waiters = new Map<string, Waiter>();
  /** By lock: whoever stands in its queue. */
  readonly #queues = new Map<string, WaitQueue>();
  #isClosed = false;
  readonly #idle: (() => void)[] = [];

  constructor(
    store: LockStore,
    calls: StoreCalls,
    clock: Clock,
    events: Events,
    settings: LocksSettings,
    process: string,
    releases: Releases,
    onLost: (holdId: string) => void,
  ) {
    this.#store = store;
    this.#calls = calls;
    this.#clock = clock;
    this.#events = events;
    this.#settings = settings;
    this.#livenessMs = 3 * settings.pollMs + settings.storeTimeoutMs;
    this.#releases = releases;
    this.#onLost = onLost;
    const listener = (message: StoreMessage): void => this.take(message);
    this.#subscription = new Subscription(store, calls, clock, events, process, settings.pollMs, listener);
  }

  /**
   * Asks for a lock and waits for it. Answers when it may be free, where it is not and `waitMs` is 0. Whatever it rejects with,
   * nothing stays queued or held.
   */
  async acquire(key: string, request: HoldRequest, terms: WaitTerms): Promise<Granted | Refused> {
    const startedAt = this.#clock.now();
    const { maxWaiters, storeTimeoutMs } = this.#settings;
    const isQueueing = terms.waitMs > 0;
    if (isQueueing && this.#waiters.size >= maxWaiters) {
      throw new LockLimitError('Too many requests of this process wait for locks', { key });
    }
    const waiter: Waiter = { key, request, leaseMs: terms.leaseMs, startedAt };
    this.#waiters.set(request.holdId, waiter);
    let reply: AcquireReply;
    try {
      let sent = startedAt;
      if (isQueueing && !this.#subscription.isInForce) {
        await this.#subscription.ensure(storeTimeoutMs / 2);
        sent = this.#clock.now();
      }
      reply = await this.#ask(waiter, isQueueing, sent, storeTimeoutMs - elapsedMs(sent, startedAt));
      const over = this.#isClosed ? new LocksClosedError({ key }) : terms.interruption.error;
      if (over !== undefined) throw over;
      if (reply.status === 'granted') return this.#accept(key, reply.grant, { sent, nowMs: reply.nowMs });
      if (reply.status === 'queued') return await this.#wait(waiter, terms, sent, reply);
    } catch (error) {
      // Whatever went wrong, the store may have queued or granted: the same call undoes either.
      this.#releases.giveInBackground(request, Math.max(terms.leaseMs, this.#livenessMs));
      throw error;
    } finally {
      this.#waiters.delete(request.holdId);
      if (this.#waiters.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
    }
    if (reply.status === 'refused') return { freeInMs: reply.freeInMs };
    throw refusal(key, reply.status);
  }

  /** Grants to this process ride in the replies of any call on their key. */
  takeClaims(id: string, sent: Instant, reply: Reply): void {
    this.#queues.get(id)?.see({ sent, nowMs: reply.nowMs });
    for (const grant of reply.claims) this.#offer(grant);
  }

  /** What the store's stream tells this process. */
  take(message: StoreMessage): void {
    if (message.kind === 'granted') this.#offer(message.grant);
    else if (message.kind === 'lost') this.#onLost(message.holdId);
    else if (message.kind === 'resubscribed') for (const queue of this.#queues.values()) void this.#poll(queue);
    else if (message.kind === 'warning') warnOnce(message.code, message.message);
    else this.#events.emit('storeError', { operation: 'subscribe', error: message.error });
  }

  /** Refuses whoever waits and whoever comes. */
  close(): void {
    this.#isClosed = true;
    for (const waiter of [...this.#waiters.values()]) waiter.fail?.(new LocksClosedError({ key: waiter.key }));
  }

  /** Resolves when no acquire is on its way. */
  async idle(): Promise<void> {
    if (this.#waiters.size > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Ends the stream. */
  unsubscribe(): Promise<void> {
    return this.#subscription.end();
  }

  #ask(waiter: Waiter, queue: boolean, sent: Instant, deadlineMs: number): Promise<AcquireReply> {
    const { leaseMs } = waiter;
    const terms = { leaseMs, queue, maxWaiters: this.#settings.maxWaitersPerKey, livenessMs: this.#livenessMs };
    const { request } = waiter;
    const onAnswer = (reply: AcquireReply): void => this.takeClaims(request.id, sent, reply);
    return this.#calls.run('acquire', sent, deadlineMs, () => this.#store.acquire(request, terms), onAnswer);
  }

  /** A grant that came in the reply to its own call. One that is over on arrival is no grant. */
  #accept(key: string, grant: StoreGrant, seen: Seen): Granted {
    const granted = grantedByReply(grant, seen, this.#clock.now());
    if (granted !== undefined) return granted;
    throw new LockStoreError('The lock store answered too late: the lease was over', { key, outcome: 'unknown' });
  }

  /** Stands in the queue until a grant, `waitMs`, the signal or the end of the `Locks`. */
  #wait(waiter: Waiter, terms: WaitTerms, sent: Instant, reply: Queued): Promise<Granted> {
    const { request, startedAt } = waiter;
    const queue = this.#join(waiter, sent, reply);
    const leftMs = terms.waitMs - elapsedMs(this.#clock.now(), startedAt);
    const promise = new Promise<Granted>((resolve, reject) => {
      waiter.grant = resolve;
      waiter.fail = reject;
    });
    // Cleared when the waiter is gone; an endless wait needs none.
    const timer =
      leftMs === Number.POSITIVE_INFINITY ? undefined : this.#clock.after(leftMs, () => this.#timeOut(queue, waiter));
    const deafen = terms.interruption.listen((error) => {
      this.#events.emit('aborted', { ...eventOf(waiter), waitedMs: elapsedMs(this.#clock.now(), startedAt) });
      waiter.fail?.(error);
    });
    this.#events.emit('waiting', eventOf(waiter));
    if (waiter.early !== undefined) this.#offer(waiter.early.grant, waiter.early.receivedAt);
    return promise.finally(() => {
      timer?.cancel();
      deafen();
      if (queue.leave(waiter)) this.#queues.delete(request.id);
    });
  }

  #join(waiter: Waiter, sent: Instant, reply: Queued): WaitQueue {
    const { id } = waiter.request;
    const seen = { sent, nowMs: reply.nowMs };
    let queue = this.#queues.get(id);
    if (queue === undefined) {
      queue = new WaitQueue(this.#clock, this.#settings.pollMs, seen, (due) => void this.#poll(due));
      this.#queues.set(id, queue);
    }
    queue.see(seen);
    queue.join(waiter, reply.freeInMs);
    return queue;
  }

  #timeOut(queue: WaitQueue, waiter: Waiter): void {
    const waitedMs = elapsedMs(this.#clock.now(), waiter.startedAt);
    this.#events.emit('timeout', { ...eventOf(waiter), waitedMs });
    // Who could not ask can't say that somebody else has it.
    waiter.fail?.(queue.fault ?? new LockTimeoutError({ key: waiter.key, waitedMs, retryAfterMs: queue.freeInMs }));
  }

  /** A grant that came by message, or in the reply to another call. */
  #offer(grant: StoreGrant, receivedAt: Instant = this.#clock.now()): void {
    const waiter = this.#waiters.get(grant.holdId);
    if (waiter === undefined) return;
    const queue = this.#queues.get(waiter.request.id);
    if (waiter.grant === undefined || queue === undefined) {
      // It overtook the reply that says it was queued; it is kept until that reply.
      waiter.early = { grant, receivedAt };
      return;
    }
    const granted = grantedByMessage(grant, queue.latest, receivedAt, this.#clock.now(), waiter.request.claimMs);
    if (granted === undefined) void this.#askAgain(queue, waiter);
    else waiter.grant(granted);
  }

  /** One call for all waiters of a key: the oldest asks, and the reply names the process's open claims. */
  async #poll(queue: WaitQueue): Promise<void> {
    const oldest = queue.oldest;
    if (oldest === undefined || queue.isPolling) return;
    queue.isPolling = true;
    const wasLost = await this.#askAgain(queue, oldest);
    // The store did not know the oldest: it has lost its data, and knows none of the others.
    if (wasLost) await Promise.all(queue.others(oldest).map((waiter) => this.#askAgain(queue, waiter)));
    queue.isPolling = false;
    queue.pollLater();
  }

  /** Asks for a waiter; answers whether the store had lost it. */
  async #askAgain(queue: WaitQueue, waiter: Waiter): Promise<boolean> {
    const sent = this.#clock.now();
    try {
      const reply = await this.#ask(waiter, true, sent, this.#settings.pollMs);
      queue.fault = undefined;
      if (reply.status === 'granted') {
        const granted = grantedByReply(reply.grant, { sent, nowMs: reply.nowMs }, this.#clock.now());
        // Over already: the next poll finds it lapsed and queues again.
        if (granted !== undefined) waiter.grant?.(granted);
        // Granted, but not from the queue: its place there was lost.
        return !reply.grant.isClaim;
      }
      if (reply.status === 'queued') {
        queue.freeInMs = reply.freeInMs;
        return reply.isNew;
      }
      waiter.fail?.(refusal(waiter.key, reply.status));
    } catch (error) {
      queue.fault = error as LockStoreError;
      this.#events.emit('storeError', { operation: 'poll', key: waiter.key, error: error as LockStoreError });
    }
    return false;
  }
}

function refusal(key: string, status: 'full' | 'cancelled' | 'refused'): Error {
  if (status === 'full') return new LockLimitError('Too many requests wait for this lock', { key });
  return new LockStoreError('The lock store had cancelled this call', { key, outcome: 'not-applied' });
}
