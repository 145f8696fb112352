import { elapsedMs, type Instant, lastedMs } from '../base/clock.ts';
import { InFlight } from '../base/in-flight.ts';
import { warnOnce } from '../base/process-state.ts';
import { type Granted, grantedByMessage, grantedByReply } from '../client/granted.ts';
import type { Releases } from '../client/releases.ts';
import { Asks, notAsked, refusal, retryAfterRefusal, tooLate, tooMany } from '../client/requests.ts';
import type { Subscription } from '../client/subscription.ts';
import { LocksClosedError, LockTimeoutError } from '../model/errors.ts';
import type { AcquireReply, StoreGrant, StoreMessage } from '../model/store.ts';
import type { Base } from '../runtime/runtime.ts';
import { Deadlocks } from './deadlock.ts';
import { EarlyGrants } from './early-grants.ts';
import { type Ask, eventOf, type NotFree, Waiter, type WaitQueue, WaitQueues } from './local-queue.ts';
import { type PollListener, Polls } from './polls.ts';
import { Tries } from './retries.ts';

/**
 * Gets grants from the store: at once, or by standing in its queue. A waiter's state goes one way, pending, waiting,
 * gone; a grant for any other state changes nothing, and what may be left in the store is given back.
 */
export class PendingAcquires {
  readonly #base: Base;
  readonly #livenessMs: number;
  readonly #asks: Asks;
  readonly #polls: Polls | Tries;
  /** The same, where the store has no queue: who is refused waits in this process alone. */
  readonly #tries: Tries | undefined;
  readonly #releases: Releases;
  readonly #deadlocks: Deadlocks;
  readonly #subscription: Subscription;
  /** How many were asked for, and not yet answered for good. */
  readonly asked: InFlight = new InFlight();
  /** By hold id: whoever stands in a queue. */
  readonly #waiters = new Map<string, Waiter>();
  /** Grants that overtook the replies to their own acquires, or are of no use to anybody. */
  readonly #early: EarlyGrants;
  readonly #queues: WaitQueues;
  /** Whether whoever comes is refused. */
  isClosed = false;

  constructor(base: Base, subscription: Subscription, releases: Releases) {
    const { store, clock, settings } = base;
    this.#base = base;
    this.#early = new EarlyGrants(settings.claimMs);
    this.#livenessMs = 3 * settings.pollMs + settings.storeTimeoutMs;
    this.#subscription = subscription;
    this.#releases = releases;
    this.#asks = new Asks(base, this.#livenessMs, (id, sent, reply) => this.takeClaims(id, sent, reply));
    const listener: PollListener = {
      granted: (waiter, granted) => this.#grant(waiter, granted),
      failed: (waiter, error) => this.#fail(waiter, error),
      polled: (waiter) => this.#deadlocks.look(waiter),
    };
    this.#tries = store.capabilities.queue ? undefined : new Tries(base, this.#asks, listener);
    this.#polls = this.#tries ?? new Polls(base, this.#asks, listener);
    this.#queues = new WaitQueues(clock, this.#polls.pause, (due) => void this.#polls.poll(due));
    this.#deadlocks = new Deadlocks(base, this.#livenessMs, listener.failed);
  }

  /** Asks for a lock and waits for it, unless too many do; the asker hears what came of it. */
  acquire(asked: Ask): void {
    const startedAt = this.#base.clock.now();
    const ask = asked.waitMs > 0 && this.#isFull ? withoutWait(asked) : asked;
    const waiter = new Waiter(ask, startedAt);
    this.asked.begin();
    if (ask.waitMs === 0 || this.#subscription.isInForce) this.#begin(waiter, startedAt);
    else void this.#subscription.ensure(this.#base.settings.storeTimeoutMs / 2).then(() => this.#beginLate(waiter));
  }

  /** Grants to this process ride in the replies of any call on their key. */
  takeClaims(id: string, sent: Instant, reply: Pick<AcquireReply, 'nowMs' | 'claims'>): void {
    const queue = this.#queues.get(id);
    queue?.answered({ sent, nowMs: reply.nowMs });
    for (const grant of reply.claims) if (grant.holdId !== queue?.grantedId) this.#offer(grant);
  }

  /** What the store's stream tells this process. */
  take(message: Exclude<StoreMessage, { kind: 'lost' }>): void {
    if (message.kind === 'granted') this.#offer(message.grant);
    else if (message.kind === 'resubscribed') for (const queue of this.#queues.all) void this.#polls.poll(queue);
    else if (message.kind === 'warning') warnOnce(message.code, message.message);
    else if (message.kind === 'freed') this.#tries?.freed(this.#queues.get(message.id));
    else if (message.kind === 'fault')
      this.#base.events.emit('storeError', { operation: 'subscribe', error: message.error });
  }

  /** Refuses whoever waits and whoever comes. */
  close(): void {
    this.isClosed = true;
    for (const waiter of [...this.#waiters.values()]) this.#fail(waiter, new LocksClosedError({ key: waiter.ask.key }));
  }

  /** Once subscribed. What was given up meanwhile, or has no time left, is not sent: there is nothing to undo. */
  #beginLate(waiter: Waiter): void {
    const now = this.#base.clock.now();
    const isLate = waiter.askableMs(now, this.#base.settings.storeTimeoutMs) <= 0;
    const over = this.#overOf(waiter);
    if (over !== undefined) this.#giveUp(waiter, over, false);
    else if (isLate) this.#fail(waiter, notAsked(waiter.ask.key), false);
    else this.#begin(waiter, now);
  }

  /** Asks the store; or, where it has no queue, stands behind those who wait here already. */
  #begin(waiter: Waiter, sent: Instant): void {
    const { request, waitMs } = waiter.ask;
    const tries = waitMs > 0 ? this.#tries : undefined;
    const onReply = (reply: AcquireReply, asOf = sent): void => {
      if (waiter.state !== 'pending') return;
      this.#answered(waiter, asOf, tries?.inLine(reply, this.#queues.get(request.id)) ?? reply);
    };
    const line = tries && this.#queues.get(request.id);
    if (tries !== undefined && line !== undefined) {
      tries.join(line, onReply);
      return;
    }
    const deadlineMs = waiter.askableMs(sent, this.#base.settings.storeTimeoutMs);
    this.#asks.send('acquire', waiter, sent, deadlineMs, onReply, (error) => this.#fail(waiter, error));
  }

  /** Why a waiter is not to go on, if there is a reason. */
  #overOf({ ask }: Waiter): Error | undefined {
    return this.isClosed ? new LocksClosedError({ key: ask.key }) : ask.interruption.error;
  }

  /** The reply to the first call. */
  #answered(waiter: Waiter, sent: Instant, reply: AcquireReply): void {
    const { key, asker, request, leaseMs } = waiter.ask;
    const over = this.#overOf(waiter);
    if (over !== undefined) this.#giveUp(waiter, over);
    else if (reply.status === 'granted') {
      const granted = grantedByReply(reply, sent, this.#base.clock.now(), leaseMs);
      if (granted !== undefined) this.#grant(waiter, granted);
      else this.#fail(waiter, tooLate(key));
    } else if (reply.status === 'queued') this.#wait(waiter, sent, reply);
    else {
      this.#end(waiter);
      // A copy of the call may come yet: it would be granted, and nobody would know.
      if ((request.unanswered ?? 0) > 0) this.#releases.giveInBackground({ key, request, leaseMs });
      const queue = this.#queues.get(request.id);
      if (reply.status === 'refused') asker.refused(retryAfterRefusal(reply, queue));
      else asker.failed(refusal(waiter, reply, queue));
    }
  }

  /** Stands in the queue until a grant, `waitMs`, the signal or the end of the `Locks`. */
  #wait(waiter: Waiter, sent: Instant, reply: NotFree): void {
    const { startedAt } = waiter;
    const { key, request, waitMs, interruption } = waiter.ask;
    // Only here it is known that it must wait: a burst on free keys is no crowd.
    if (this.#isFull) {
      this.#fail(waiter, tooMany(key));
      return;
    }
    waiter.state = 'waiting';
    this.#waiters.set(request.holdId, waiter);
    const queue = this.#queues.join(waiter, sent, reply);
    const leftMs = waitMs - elapsedMs(this.#base.clock.now(), startedAt);
    // Cleared when the waiter is gone; an endless wait needs none.
    const timer = leftMs < Infinity ? this.#base.clock.after(leftMs, () => this.#timeOut(queue, waiter)) : undefined;
    const unsubscribe = interruption.listen((error) => this.#giveUp(waiter, error));
    waiter.leave = () => {
      timer?.cancel();
      unsubscribe();
      this.#waiters.delete(request.holdId);
      this.#deadlocks.forget(waiter);
      this.#queues.leave(queue, waiter);
    };
    this.#base.events.emit('waiting', eventOf(waiter));
    const early = this.#early.take(request.holdId);
    if (early !== undefined) this.#offer(early.grant, this.#base.clock.now(), early.receivedAt);
    // A job that was told to stop still gets what is free, and that may have been on its way.
    if (interruption.waitError !== undefined) this.#giveUp(waiter, interruption.waitError);
    this.#deadlocks.look(waiter);
  }

  #grant(waiter: Waiter, granted: Granted): void {
    if (waiter.state === 'gone') return;
    waiter.queue?.came(waiter);
    this.#end(waiter);
    // Who has only tried hears of a forced release, too.
    if (!this.#subscription.isInForce) void this.#subscription.ensure(0);
    waiter.ask.asker.granted(granted);
  }

  #giveUp(waiter: Waiter, error: Error, wasSent = true): void {
    if (waiter.state === 'gone') return;
    // First, here and below: what listens may abort it as well.
    this.#fail(waiter, error, wasSent);
    const waitedMs = lastedMs(this.#base.clock.now(), waiter.startedAt);
    // Whom a close refuses was not aborted.
    if (!this.isClosed) this.#base.events.emit('aborted', { ...eventOf(waiter), waitedMs });
  }

  #fail(waiter: Waiter, error: Error, wasSent = true): void {
    if (waiter.state === 'gone') return;
    this.#end(waiter);
    // Whatever went wrong, the store may have queued or granted: the same call undoes either.
    const { key, request, leaseMs, asker } = waiter.ask;
    if (wasSent) this.#releases.giveInBackground({ key, request, leaseMs: Math.max(leaseMs, this.#livenessMs) });
    asker.failed(error);
  }

  #end(waiter: Waiter): void {
    waiter.state = 'gone';
    waiter.leave?.();
    this.asked.end();
  }

  get #isFull(): boolean {
    return this.#waiters.size >= this.#base.settings.maxWaiters;
  }

  #timeOut(queue: WaitQueue, waiter: Waiter): void {
    const waitedMs = lastedMs(this.#base.clock.now(), waiter.startedAt);
    const retryAfterMs = queue.retryAfterMs(waiter);
    // Who could not ask can't say that somebody else has it.
    this.#fail(waiter, queue.fault ?? new LockTimeoutError({ key: waiter.ask.key, waitedMs, retryAfterMs }));
    this.#base.events.emit('timeout', { ...eventOf(waiter), waitedMs });
  }

  /** A grant that came by message, or in the reply to another call. */
  #offer(grant: StoreGrant, now: Instant = this.#base.clock.now(), receivedAt = now): void {
    const waiter = this.#waiters.get(grant.holdId);
    const queue = waiter?.queue;
    if (waiter === undefined || queue === undefined) {
      if (!this.#releases.giveLate(grant.holdId)) this.#early.keep(grant, receivedAt);
      return;
    }
    const granted = grantedByMessage(grant, queue.latest, receivedAt, now, waiter.ask.request.claimMs);
    if (granted === undefined) void this.#polls.ask(queue, waiter);
    else this.#grant(waiter, granted);
  }
}

/** Where too many wait, a key may be free all the same, or its owner's. */
function withoutWait(ask: Ask): Ask {
  const { key, asker } = ask;
  return { ...ask, waitMs: 0, asker: { ...asker, refused: () => asker.failed(tooMany(key)) } };
}
