import { elapsedMs, type Instant } from '../base/clock.ts';
import { InFlight } from '../base/in-flight.ts';
import { warnOnce } from '../base/process-state.ts';
import { RoundLimiter } from '../base/round-limiter.ts';
import { inBackground } from '../base/safely.ts';
import type { StoreAccess } from '../client/access.ts';
import { type Granted, grantedByReply, grantedTooLate } from '../client/granted.ts';
import type { Releases } from '../client/releases.ts';
import { badKey } from '../client/store-client.ts';
import { Subscription } from '../client/subscription.ts';
import { hasCode } from '../model/errors/by-code.ts';
import type { LockStoreError } from '../model/errors/failures.ts';
import { LocksClosedError } from '../model/errors/refusals.ts';
import { eventOf } from '../model/events.ts';
import type { AcquireReply, StoreMessage } from '../model/store.ts';
import { type NotFree, Waiter, WaitQueues } from './local-queue.ts';
import { LocalWaits } from './local-waits.ts';
import type { Holders, Observe, WaitObserver } from './observer.ts';
import { Offers } from './offers.ts';
import { type PollListener, Polls } from './polls.ts';
import { notSent, refusal, retryAfterRefusal, timeoutOf, tooManyWaiters } from './refusals.ts';
import type { AcquireTask, Obstacle } from './task.ts';

/**
 * Gets grants from the store: at once, or by waiting in its queue. A waiter's state goes one way: pending, waiting, gone. A
 * grant for a waiter that is gone changes nothing; what may be left in the store is released.
 */
export class PendingAcquires {
  readonly #access: StoreAccess;
  readonly #releases: Releases;
  readonly #holders: Holders;
  readonly #polls: Polls;
  readonly #observer: WaitObserver | undefined;
  readonly #subscription: Subscription;
  /** Acquires that have not ended. */
  readonly inFlight: InFlight = new InFlight();
  /** By hold id: the waiters that stand in a queue. */
  readonly #waiters = new Map<string, Waiter>();
  readonly #localWaits: LocalWaits;
  /** Acquires held back until the subscription is active, in order of arrival. Undefined if there are none. */
  #unsubscribed: Waiter[] | undefined;
  /** Limits how many grants are delivered in one round of the event loop. */
  readonly #limiter = new RoundLimiter();
  readonly #offers: Offers;
  readonly #queues: WaitQueues;
  readonly #onDue = (waiter: Waiter): void => inBackground(this.#timeOut(waiter));
  isClosed = false;

  constructor(access: StoreAccess, releases: Releases, holders: Holders, observe?: Observe) {
    const { clock, client } = access;
    this.#access = access;
    this.#releases = releases;
    this.#holders = holders;
    this.#localWaits = new LocalWaits(access, this.inFlight, () => this.#isFull);
    const onMessage = (message: StoreMessage): void => this.#onMessage(message);
    this.#subscription = new Subscription(access, onMessage, () => holders.verify());
    const listener: PollListener = {
      onGranted: (waiter, granted) => this.#grant(waiter, granted),
      onFailed: (waiter, error) => this.#fail(waiter, error),
      onRequeued: (waiter) => this.#observer?.onRequeued(waiter),
      onPolled: (queue) => this.#observer?.onPolled(queue),
    };
    this.#polls = new Polls(access, listener, this.#limiter);
    this.#queues = new WaitQueues(clock, this.#polls);
    this.#observer = observe?.(listener.onFailed);
    this.#offers = new Offers(access, releases, this.#waiters, this.#limiter, {
      hasPending: () => this.inFlight.count > this.#waiters.size + this.#localWaits.size,
      onGranted: listener.onGranted,
      onUnverified: (waiter, queue) => inBackground(this.#polls.ask(queue, waiter)),
    });
    client.onClaims = (id, sent, reply) => {
      const queue = this.#queues.get(id);
      queue?.onReply({ sent, nowMs: reply.nowMs });
      let last: Promise<void> | undefined;
      for (const grant of reply.claims) if (grant.holdId !== queue?.grantedId) last = this.#offers.offer(grant) ?? last;
      return last;
    };
  }

  /**
   * Asks for a lock and waits for it, unless too many acquires wait. Calls one of the task's callbacks. Asks the store once
   * nothing in the scope of the task is in its way. `now` is `startedAt` for an acquire that has not waited yet.
   */
  acquire(task: AcquireTask, now: Instant, obstacle?: Obstacle): void {
    if (obstacle === undefined) this.#ask(task, now);
    else this.#localWaits.add(task, obstacle, () => task.enter() || this.#ask(task, this.#access.clock.now()));
  }

  #ask(task: AcquireTask, now: Instant): void {
    const waiter = new Waiter(task, now, task.waitMs > 0 && !this.#isFull);
    this.inFlight.begin();
    const { timeLeftMs } = waiter;
    // A store that has longer than this to reply has not failed by then.
    if (timeLeftMs < this.#access.settings.storeTimeoutMs)
      waiter.startTimer(this.#access.clock, timeLeftMs, this.#onDue);
    if (!waiter.mayWait) this.#begin(waiter, now);
    // Behind those that wait to subscribe, also just after the subscription has become active.
    else if (this.#unsubscribed !== undefined) this.#unsubscribed.push(waiter);
    else if (this.#subscription.isInForce || this.#access.client.outage.isDown) this.#begin(waiter, now);
    else inBackground(this.#subscribeFor(waiter));
  }

  /** Refuses all waiters and all new acquires, except those that re-enter a hold around them, as long as that lasts. */
  close(): void {
    this.isClosed = true;
    this.#localWaits.close();
    for (const waiter of [...this.#waiters.values()])
      if (!waiter.task.isBeneathHold) this.#fail(waiter, new LocksClosedError(waiter.task));
  }

  /** The acquires that wait in a queue, or for another branch of their scope. */
  get waiting(): Iterable<AcquireTask> {
    return [...[...this.#waiters.values()].map(({ task }) => task), ...this.waitingLocally];
  }

  /** Those that wait for another branch of their scope: no store knows them. */
  get waitingLocally(): Iterable<AcquireTask> {
    return this.#localWaits.tasks;
  }

  /** Ends the stream of messages. */
  end(): Promise<void> {
    return this.#subscription.end();
  }

  #onMessage(message: StoreMessage): void {
    if (message.kind === 'granted') inBackground(this.#offers.offer(message.grant));
    else if (message.kind === 'lost') this.#holders.loseById(message.holdId);
    else if (message.kind === 'next') inBackground(this.#askFor(message.holdId));
    else if (message.kind === 'resubscribed') {
      this.#subscription.onResubscribed();
      for (const queue of this.#queues.all) inBackground(this.#polls.poll(queue));
    } else if (message.kind === 'warning') warnOnce(message.code, message.message);
    else if (message.kind === 'fault') this.#subscription.onFault(message.error);
  }

  /** Asks for the next of a long row of readers, after the grants before it were delivered. */
  async #askFor(holdId: string): Promise<void> {
    await this.#limiter.slot();
    const waiter = this.#waiters.get(holdId);
    if (waiter?.queue === undefined) return;
    await this.#holders.renewClaims(waiter.task.request.id);
    if (this.#waiters.has(holdId)) await this.#polls.ask(waiter.queue, waiter);
  }

  async #subscribeFor(first: Waiter): Promise<void> {
    const waiters = [first];
    this.#unsubscribed = waiters;
    await this.#subscription.ensure(this.#access.settings.storeTimeoutMs / 2);
    // A listener of events may ask for more meanwhile.
    for (const waiter of waiters) this.#beginLate(waiter);
    this.#unsubscribed = undefined;
  }

  /** Begins once subscribed. An acquire that was given up, or has no time left, is not sent: there is nothing to undo. */
  #beginLate(waiter: Waiter): void {
    if (waiter.state === 'gone') return;
    const now = this.#access.clock.now();
    const { task, askedAt } = waiter;
    const isLate = elapsedMs(now, askedAt) >= Math.max(task.waitMs, this.#access.settings.storeTimeoutMs);
    const reason = this.#stopReason(waiter) ?? (isLate ? notSent(task) : undefined);
    if (reason === undefined) this.#begin(waiter, now);
    else this.#fail(waiter, reason);
  }

  #begin(waiter: Waiter, sent: Instant): void {
    const { task, mayWait } = waiter;
    waiter.wasSent = true;
    const onReply = (reply: AcquireReply): void => {
      waiter.isSettled = reply.status === 'queued' && reply.mayArriveLater === false;
      if (waiter.state === 'pending') this.#onFirstReply(waiter, sent, reply);
    };
    const { storeTimeoutMs } = this.#access.settings;
    // After the time that subscribing took.
    const timeoutMs = storeTimeoutMs - Math.min(elapsedMs(sent, waiter.askedAt), storeTimeoutMs / 2);
    const { key, category, request, leaseMs } = task;
    const call = mayWait || task.waitMs === 0 ? task : { key, category, request, leaseMs, waitMs: 0 };
    const onError = (error: LockStoreError): void => {
      // A call that certainly did nothing needs no release.
      waiter.wasSent = error.outcome !== 'not-applied';
      this.#fail(waiter, error);
    };
    this.#access.client.acquire(call, { sent, timeoutMs }, onReply, onError);
  }

  /** Why a waiter must not go on, if there is a reason. */
  #stopReason({ task }: Waiter): Error | undefined {
    return this.isClosed && !task.isBeneathHold ? new LocksClosedError(task) : task.cancellation.error;
  }

  #onFirstReply(waiter: Waiter, sent: Instant, reply: AcquireReply): void {
    const { task } = waiter;
    const { key, category, request, leaseMs } = task;
    const reason = this.#stopReason(waiter);
    if (reason !== undefined) this.#fail(waiter, reason);
    else if (reply.status === 'granted') {
      const granted = grantedByReply(reply, sent, this.#access.clock.now(), leaseMs);
      if (granted !== undefined) this.#grant(waiter, granted);
      else this.#fail(waiter, grantedTooLate(task));
    } else if (reply.status === 'queued') this.#wait(waiter, sent, reply);
    else {
      this.#end(waiter);
      // A copy of the call may still arrive: it would be granted, and nobody would know.
      if (reply.mayArriveLater) this.#releases.releaseInBackground({ key, category, request, leaseMs });
      const queue = this.#queues.get(request.id);
      const { holdTimes } = this.#access;
      if (reply.status !== 'refused') this.#reportFailure(task, refusal(waiter, reply, queue, holdTimes));
      else if (task.waitMs > 0) task.onFailed(tooManyWaiters(task));
      else task.onRefused(retryAfterRefusal(waiter, reply, queue, holdTimes));
    }
  }

  /** Stands in the queue until a grant, `waitMs`, the signal or the end of the `Locks`. */
  #wait(waiter: Waiter, sent: Instant, reply: NotFree): void {
    const { request, waitMs, startedAt, cancellation } = waiter.task;
    // Only now is it known that it must wait: a burst on free keys is no crowd.
    if (this.#isFull) {
      this.#fail(waiter, tooManyWaiters(waiter.task));
      return;
    }
    waiter.state = 'waiting';
    waiter.task.onQueued();
    this.#waiters.set(request.holdId, waiter);
    this.#queues.join(waiter, sent, reply);
    const { clock } = this.#access;
    waiter.startTimer(clock, waitMs - elapsedMs(clock.now(), startedAt), this.#onDue);
    cancellation.listen((error) => this.#fail(waiter, error));
    waiter.unlisten = waiter.task.listen(() => this.#leaveIfLeftOut(waiter));
    if (this.#access.events.has('waiting')) this.#access.events.emit('waiting', eventOf(waiter.task));
    this.#offers.offerEarly(waiter);
    // A job that must stop still gets a free key, and its grant may have been on its way.
    if (cancellation.waitError !== undefined) this.#fail(waiter, cancellation.waitError);
    this.#observer?.onWaiting(waiter);
    // A branch may have ended while the call was on its way.
    this.#leaveIfLeftOut(waiter);
  }

  /** Ends a wait that the store can't end: the task goes on in its scope. */
  #leaveIfLeftOut(waiter: Waiter): void {
    if (waiter.state !== 'waiting' || !waiter.task.isLeftOut) return;
    this.#giveUp(waiter);
    if (!waiter.task.enter()) waiter.task.beginAgain();
  }

  #grant(waiter: Waiter, granted: Granted): void {
    if (waiter.state === 'gone') return;
    waiter.queue?.turnReached(waiter);
    this.#end(waiter);
    // The hold of a `tryAcquire` must also learn of a forced release.
    if (!this.#subscription.isInForce) inBackground(this.#subscription.ensure(0));
    waiter.task.onGranted(granted);
  }

  #fail(waiter: Waiter, error: Error): void {
    if (waiter.state === 'gone') return;
    this.#giveUp(waiter);
    this.#reportFailure(waiter.task, error);
  }

  #giveUp(waiter: Waiter): void {
    this.#end(waiter);
    if (waiter.wasSent) this.#releases.releaseInBackground(waiter.leftAfter(this.#access.client.livenessMs));
  }

  /** A failure of the store is an event, too. */
  #reportFailure(task: AcquireTask, error: Error): void {
    const ofStore = hasCode(error, 'ERR_LOCK_STORE') ? error : undefined;
    const refused = ofStore && badKey(ofStore);
    if (ofStore !== undefined && refused === undefined) this.#access.client.report('acquire', task, ofStore);
    task.onFailed(refused ?? error);
  }

  #end(waiter: Waiter): void {
    waiter.state = 'gone';
    waiter.timer?.cancel();
    if (waiter.queue !== undefined) {
      waiter.task.cancellation.unlisten();
      waiter.unlisten?.();
      this.#waiters.delete(waiter.task.request.holdId);
      this.#observer?.onEnded(waiter);
      this.#queues.leave(waiter.queue, waiter);
    }
    this.inFlight.end();
  }

  get #isFull(): boolean {
    return this.#waiters.size + this.#localWaits.size >= this.#access.settings.maxWaiters;
  }

  async #timeOut(waiter: Waiter): Promise<void> {
    const { queue, task } = waiter;
    // The last poll failed, so nothing is known about the key: that error is the reason, not a timeout.
    if (queue?.fault !== undefined) {
      this.#fail(waiter, queue.fault);
      return;
    }
    this.inFlight.begin();
    // Before giving up, so that the count of waiters includes this one.
    const timeout = timeoutOf(this.#access, waiter);
    this.#giveUp(waiter);
    const error = await timeout;
    this.inFlight.end();
    if (task.waitMs > 0) task.onFailed(error);
    else task.onRefused(error.retryAfterMs);
  }
}
