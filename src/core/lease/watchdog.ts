import { type Clock, elapsedMs, type Instant, outsideRequests, type Timer } from '../base/clock.ts';
import { leaseDeadline, remainingMs } from '../base/deadline.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import { SwapList } from '../base/swap-list.ts';
import { reported } from '../client/calls.ts';
import type { RenewReply } from '../model/store.ts';
import type { Base } from '../runtime/runtime.ts';
import type { Grant } from './grant.ts';

/** Renewals that fall due within this of each other travel together. */
const slackMs = 500;
const longestRetryMs = 1_000;

/**
 * Renews the leases of this process's grants at a third of their length, and says which were lost. One timer for all of
 * them: started with a grant, armed anew while any is watched, cleared by `close`, unref'd.
 */
export class Watchdog {
  readonly #base: Base;
  readonly #onLost: (grant: Grant, why: string) => void;
  readonly #grants = new SwapList<Grant>();
  #timer: Timer | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;

  constructor(base: Base, onLost: (grant: Grant, why: string) => void) {
    this.#base = base;
    this.#onLost = onLost;
  }

  get grants(): Iterable<Grant> {
    return this.#grants;
  }

  watch(grant: Grant): void {
    this.#grants.add(grant);
    this.#schedule(grant, grant.remainingAt(grant.grantedAt) / 3, grant.grantedAt);
  }

  /** After a hold was added, which may want a longer lease, or be the first that wants renewal. */
  replan(grant: Grant, isLonger: boolean): void {
    // A renewal on its way schedules the next one when it has ended; one that is due stays so: it is due in time.
    if (grant.isRenewing) return;
    if (isLonger) this.#schedule(grant, 0);
    else if (grant.renewAtMs === Number.POSITIVE_INFINITY) this.#schedule(grant, grant.remainingMs / 3);
  }

  /** Answers whether it was watched. */
  unwatch(grant: Grant): boolean {
    return this.#grants.delete(grant);
  }

  close(): void {
    this.#disarm();
  }

  /**
   * Renews now. Rejects with a `LockStoreError`, of which its event tells, when the store did not answer; a definite no
   * makes the grant lost.
   */
  async renew(grant: Grant, leaseMs: number, deadlineMs: number = this.#base.settings.storeTimeoutMs): Promise<void> {
    const { store, calls, clock, events } = this.#base;
    const sent = clock.now();
    const leftMs = remainingMs(sent, grant.maxHold);
    const terms = { fence: grant.fence, leaseMs: Math.max(1, Math.ceil(Math.min(leaseMs, leftMs))) };
    grant.longestMs = Math.max(grant.longestMs, terms.leaseMs);
    grant.unheardOf = sent;
    const call = (): MaybePromise<RenewReply> => store.renew(grant.request, terms);
    const reply = await new Promise<RenewReply>((resolve, reject) => {
      calls.start('renew', sent, deadlineMs, call, resolve, (failure) =>
        reject(reported(events, 'renew', grant.key, failure)),
      );
    });
    if (!grant.isOpen) return;
    if (reply.status === 'lost') {
      this.#onLost(grant, 'The lock was lost: its lease had ended, or the key changed hands');
      return;
    }
    if (grant.unheardOf === sent) grant.unheardOf = undefined;
    // Longer than was ever asked for, it is where the store's clock was set back: once that is right again, the lease is over.
    const spanMs = Math.min(reply.endMs - reply.nowMs, grant.longestMs);
    grant.prolong(leaseDeadline(sent, spanMs), leaseMs >= leftMs);
    events.emit('renewed', { ...grant.event, remainingMs: grant.remainingMs });
  }

  /** Renews now, to the lease that the grant's holds want. What fails is told by its event, and tried again in time. */
  async renewInBackground(grant: Grant): Promise<void> {
    grant.isRenewing = true;
    const leftMs = grant.remainingMs;
    this.#arm(this.#base.clock.now().monoMs + leftMs);
    const isLonger = grant.wantsLonger;
    grant.wantsLonger = false;
    // A fixed lease ends `leaseMs` after its grant, though a claim's first renewal comes later.
    const agedMs = grant.wantsRenewal || isLonger ? 0 : elapsedMs(this.#base.clock.now(), grant.grantedAt);
    let retryMs: number | undefined;
    try {
      await this.renew(grant, grant.leaseMs - agedMs, Math.min(this.#base.settings.storeTimeoutMs, leftMs / 3));
    } catch {
      grant.wantsLonger ||= isLonger;
      retryMs = Math.min(longestRetryMs, grant.remainingMs / 6) * (0.5 + this.#base.clock.jitter());
    }
    grant.isRenewing = false;
    if (this.#grants.has(grant)) this.#schedule(grant, retryMs ?? (grant.wantsLonger ? 0 : grant.remainingMs / 3));
  }

  #schedule(grant: Grant, delayMs: number, now: Instant = this.#base.clock.now()): void {
    const nowMs = now.monoMs;
    // A fixed lease is renewed once if it began as a claim, and once for each re-entry that wants a longer one.
    const isFixed = !grant.wantsRenewal && !grant.wantsLonger;
    const isDone = !grant.isClaim && (grant.isFinal || isFixed);
    grant.renewAtMs = isDone ? Number.POSITIVE_INFINITY : nowMs + delayMs;
    this.#arm(Math.min(grant.renewAtMs, nowMs + grant.remainingAt(now)));
  }

  #arm(dueMs: number): void {
    if (dueMs >= this.#timerDueMs) return;
    this.#timer?.cancel();
    this.#timerDueMs = dueMs;
    const ms = Math.ceil(Math.max(0, dueMs - this.#base.clock.now().monoMs));
    this.#timer = outsideRequests(() => this.#base.clock.after(ms, () => this.#tick()));
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerDueMs = Number.POSITIVE_INFINITY;
  }

  #tick(): void {
    this.#disarm();
    const nowMs = this.#base.clock.now().monoMs;
    for (const grant of this.#grants) {
      // The deadline first: after a pause, nothing is sent for a lease that is over.
      if (!grant.isHeld) this.#onLost(grant, whyEnded(this.#base.clock, grant));
      else if (grant.renewAtMs <= nowMs + slackOf(grant) && !grant.isRenewing) void this.renewInBackground(grant);
      else
        this.#arm(Math.min(grant.isRenewing ? Number.POSITIVE_INFINITY : grant.renewAtMs, nowMs + grant.remainingMs));
    }
  }
}

function slackOf(grant: Grant): number {
  return Math.min(slackMs, (grant.isClaim ? grant.request.claimMs : grant.leaseMs) / 20);
}

function whyEnded(clock: Clock, grant: Grant): string {
  return grant.isFinal || remainingMs(clock.now(), grant.maxHold) <= 0
    ? 'The lock was lost: it was held for longer than maxHoldMs'
    : 'The lock was lost: its lease ended before it could be renewed';
}
