import { Alarm } from '../base/alarm.ts';
import type { Instant } from '../base/clock.ts';
import { leaseDeadline, remainingMs } from '../base/deadline.ts';
import { RoundLimiter } from '../base/round-limiter.ts';
import { inBackground } from '../base/safely.ts';
import { SwapList } from '../base/swap-list.ts';
import type { StoreAccess } from '../client/access.ts';
import { eventOf } from '../model/events.ts';
import type { RenewReply } from '../model/store.ts';
import type { Grant } from './grant.ts';

/** Renewals that fall due within this of each other travel together. */
const slackMs = 500;
const maxRetryMs = 1_000;

/**
 * Renews the leases of this process's grants at a third of their length, claims between a sixth and a third, and reports the
 * grants that are lost. One timer serves all grants: a new grant starts it, it is started again while any is watched, `close`
 * clears it. It is unref'd.
 */
export class Watchdog {
  readonly #access: StoreAccess;
  readonly #onLost: (grant: Grant, why: string) => void;
  readonly #grants = new SwapList<Grant>();
  readonly #limiter = new RoundLimiter();
  readonly #alarm: Alarm;

  constructor(access: StoreAccess, onLost: (grant: Grant, why: string) => void) {
    this.#access = access;
    this.#alarm = new Alarm(access.clock, () => this.#tick());
    this.#onLost = onLost;
  }

  get grants(): Iterable<Grant> {
    return this.#grants;
  }

  /** How many grants it watches. */
  get size(): number {
    return this.#grants.size;
  }

  watch(grant: Grant): void {
    this.#grants.add(grant);
    // A thousand readers may get their claims at once: their first renewals must not be sent at once, too.
    const share = grant.isClaim ? (1 + this.#access.clock.jitter()) / 2 : 1;
    this.#schedule(grant, (share * grant.remainingAt(grant.grantedAt)) / 3, grant.grantedAt);
  }

  /** Call it after the first hold was added that wants renewal. */
  startRenewal(grant: Grant): void {
    // A renewal on its way schedules the next one when it ends; one that is due stays due.
    if (!grant.isRenewing && grant.renewAtMs === Number.POSITIVE_INFINITY) this.#schedule(grant, grant.remainingMs / 3);
  }

  /** Call it after a hold was added that needs a later lease end: renews after `delayMs` at the latest. */
  renewSoon(grant: Grant, delayMs = 0): void {
    if (grant.isRenewing) return;
    const now = this.#access.clock.now();
    this.#schedule(grant, Math.max(0, Math.min(delayMs, grant.renewAtMs - now.monoMs)), now);
  }

  /** Returns whether it was watched. */
  unwatch(grant: Grant): boolean {
    return this.#grants.delete(grant);
  }

  close(): void {
    this.#alarm.disarm();
  }

  /**
   * Renews now. Rejects with a `LockStoreError` if the store did not reply in time; a late reply still counts. A definite no
   * makes the grant lost.
   */
  renew(grant: Grant, leaseMs: number, timeoutMs: number = this.#access.settings.storeTimeoutMs): Promise<void> {
    const { client, clock } = this.#access;
    const { request } = grant;
    const sent = clock.now();
    const leftMs = remainingMs(sent, grant.maxHold);
    const terms = { fence: grant.fence, leaseMs: Math.max(1, Math.ceil(Math.min(leaseMs, leftMs))) };
    grant.longestMs = Math.max(grant.longestMs, terms.leaseMs);
    grant.unansweredRenewal = sent;
    return new Promise((resolve, reject) => {
      let isLate = false;
      const onReply = (reply: RenewReply): void => {
        // An expired grant stays expired, even if the watchdog's timer has not noticed yet.
        if (isLate && !grant.isHeld) return;
        // A late copy, after the grant has passed to another hold id, says nothing about that.
        if (isLate && (grant.request !== request || grant.passing !== undefined)) return;
        this.#onReply(grant, reply, sent, leaseMs >= leftMs);
        if (isLate && grant.isOpen && !grant.isRenewing) this.#schedule(grant, grant.remainingMs / 3);
        resolve();
      };
      client.renew(grant, terms, { sent, timeoutMs }, onReply, (error) => {
        isLate = true;
        reject(error);
      });
    });
  }

  #onReply(grant: Grant, reply: RenewReply, sent: Instant, isFinal: boolean): void {
    const { events } = this.#access;
    if (!grant.isOpen) return;
    if (reply.status === 'lost') {
      this.#onLost(grant, 'The lock was lost: its lease had expired, or the key changed hands');
      return;
    }
    if (grant.unansweredRenewal === sent) grant.unansweredRenewal = undefined;
    // A lease longer than was ever asked for means that the store's clock was set back: it ends once that clock is right again.
    const spanMs = Math.min(reply.endMs - reply.nowMs, grant.longestMs);
    grant.prolong(leaseDeadline(sent, spanMs), isFinal);
    if (!events.has('renewed')) return;
    events.emit('renewed', { ...eventOf(grant), remainingMs: Math.round(grant.remainingMs) });
  }

  /**
   * As `renewInBackground`, but some in each round of the event loop, since thousands of grants may be due together. Returns a
   * promise that resolves when the renewal has begun; undefined if it has.
   */
  renewWithinRound(grant: Grant): Promise<void> | undefined {
    grant.isRenewing = true;
    return this.#limiter.run(() => {
      if (!this.#grants.has(grant)) return;
      if (grant.isHeld) inBackground(this.renewInBackground(grant));
      else this.#onLost(grant, grant.whyEnded);
    });
  }

  /** Renews for as long as the holds need. Emits an event and retries if it fails. */
  async renewInBackground(grant: Grant): Promise<void> {
    grant.isRenewing = true;
    const leftMs = grant.remainingMs;
    const { monoMs } = this.#access.clock.now();
    this.#alarm.arm(monoMs + leftMs, monoMs);
    const isLonger = grant.wantsLonger;
    grant.wantsLonger = false;
    let retryMs: number | undefined;
    try {
      const leaseMs = grant.wantedMs(this.#access.clock.now());
      await this.renew(grant, leaseMs, Math.min(this.#access.settings.storeTimeoutMs, leftMs / 3));
    } catch (error) {
      this.#access.client.reportBackground('renew', grant, error as Error);
      grant.wantsLonger ||= isLonger;
      retryMs = Math.min(maxRetryMs, grant.remainingMs / 6) * (0.5 + this.#access.clock.jitter());
    }
    grant.isRenewing = false;
    if (this.#grants.has(grant)) this.#schedule(grant, retryMs ?? (grant.wantsLonger ? 0 : grant.remainingMs / 3));
  }

  #schedule(grant: Grant, delayMs: number, now: Instant = this.#access.clock.now()): void {
    const nowMs = now.monoMs;
    // A fixed lease is renewed once if it began as a claim, and once for each re-entry that wants a longer one.
    const isFixed = !grant.wantsRenewal && !grant.wantsLonger;
    const isDone = !grant.isClaim && (grant.isFinal || isFixed);
    grant.renewAtMs = isDone ? Number.POSITIVE_INFINITY : nowMs + delayMs;
    this.#alarm.arm(Math.min(grant.renewAtMs, nowMs + grant.remainingAt(now)), nowMs);
  }

  #tick(): void {
    this.#alarm.disarm();
    const nowMs = this.#access.clock.now().monoMs;
    for (const grant of this.#grants) {
      // The deadline first: after a pause, nothing is sent for an expired lease.
      if (!grant.isHeld) this.#onLost(grant, grant.whyEnded);
      else if (grant.renewAtMs <= nowMs + slackOf(grant) && !grant.isRenewing)
        inBackground(this.renewWithinRound(grant));
      else {
        const renewAtMs = grant.isRenewing ? Number.POSITIVE_INFINITY : grant.renewAtMs;
        this.#alarm.arm(Math.min(renewAtMs, nowMs + grant.remainingMs), nowMs);
      }
    }
  }
}

function slackOf(grant: Grant): number {
  return Math.min(slackMs, (grant.isClaim ? grant.request.claimMs : grant.leaseMs) / 20);
}
