import type { CallSite } from '../base/call-site.ts';
import { type Clock, elapsedMs, type Instant, wholeMs } from '../base/clock.ts';
import { type Deadline, laterDeadline, remainingMs } from '../base/deadline.ts';
import type { Listed } from '../base/swap-list.ts';
import type { Granted } from '../client/granted.ts';
import { setCallSite } from '../model/errors/at-call.ts';
import { LockLostError } from '../model/errors/failures.ts';
import type { EventSource } from '../model/events.ts';
import type { LockName } from '../model/key.ts';
import type { AcquireSettings } from '../model/options.ts';
import { isAncestor } from '../model/owner.ts';
import type { HoldRequest } from '../model/store.ts';
import type { Reentrant } from '../model/types.ts';

/** Aborts a signal, in the async context of the grant's scope. */
export interface Controller {
  readonly signal: AbortSignal;
  readonly abort: (reason: unknown) => void;
}

/** What a grant is made from. */
export interface GrantSource {
  readonly clock: Clock;
  readonly name: LockName;
  /** The work that acquired it. */
  readonly work: {
    readonly traceId: string;
    readonly route: string | undefined;
    readonly isShared: boolean;
    onLost(): void;
    /** A controller for the signal of the grant. */
    createController(): Controller;
  };
  readonly request: HoldRequest;
  readonly settings: AcquireSettings;
  readonly granted: Granted;
  /** Where the application acquired it. */
  readonly callSite?: CallSite | undefined;
}

/**
 * One hold as the store knows it, for one scope. The scope's re-entrant holds share it: only the last one's release is sent
 * to the store. Its state goes one way: held, then lost or released.
 */
export class Grant implements Listed, EventSource {
  listIndex = -1;
  readonly name: LockName;
  readonly key: string;
  readonly category: string | undefined;
  readonly traceId: string;
  /** What was asked for. */
  readonly origin: HoldRequest;
  /** How the store knows it: under another hold id once it has passed to the branch around its own. */
  request: HoldRequest;
  readonly fence: number;
  readonly grantedAt: Instant;
  readonly reentrant: Reentrant;
  /** Whether the store still counts it as a claim. */
  isClaim: boolean;
  /** When the watchdog renews it next, on the monotonic clock; never, if its lease is fixed. */
  renewAtMs: number = Number.POSITIVE_INFINITY;
  isRenewing = false;
  /** How many calls of the application extend it. */
  extensions = 0;
  /** Whether its branch has ended and the store can't pass it on: it knows the grant under that branch until the release. */
  isLeft = false;
  /** While it passes to the branch around its own: resolves when the store knows it under another hold id, or has refused. */
  passing: Promise<unknown> | undefined;
  /** When the renewal was sent that has no reply yet: the store may hold the lease for longer than is known here. */
  unansweredRenewal: Instant | undefined;
  /** Whether it was released when it was lost. */
  wasReleasedAsLost = false;
  /** Whether a call has reported the loss to the application. */
  wasLossReported = false;
  /** Whether a hold needs a later lease end than the store was asked for. */
  wantsLonger = false;
  /** Whether its lease reaches `maxHoldMs`: no renewal can make it longer. */
  isFinal: boolean;
  leaseMs: number;
  /** The longest lease that the store was ever asked for: without a reply, it may last that long. */
  longestMs: number;
  readonly maxHold: Deadline;
  readonly #work: GrantSource['work'];
  readonly #callSite: CallSite | undefined;
  readonly #clock: Clock;
  readonly #firstLeaseMs: number;
  /** The latest end of the fixed leases that re-entries asked for. */
  #fixedEnd: Deadline | undefined;
  #deadline: Deadline;
  #holds = 0;
  #renewingHolds = 0;
  #isOpen = true;
  #lostError: LockLostError | undefined;
  #controller: Controller | undefined;

  constructor({ clock, name, work, request, settings, granted, callSite }: GrantSource) {
    this.#clock = clock;
    this.#callSite = callSite;
    this.name = name;
    this.key = name.key;
    this.category = name.category;
    this.#work = work;
    this.traceId = work.traceId;
    this.origin = request;
    this.request = request;
    this.reentrant = settings.reentrant;
    this.fence = granted.fence;
    this.isClaim = granted.isClaim;
    this.#firstLeaseMs = settings.leaseMs;
    this.leaseMs = settings.leaseMs;
    this.longestMs = settings.leaseMs;
    this.isFinal = !granted.isClaim && settings.leaseMs >= settings.maxHoldMs;
    this.grantedAt = granted.receivedAt;
    this.maxHold = { start: this.grantedAt, spanMs: settings.maxHoldMs };
    this.#deadline = granted.deadline;
  }

  /** The route of the request that acquired it, for people, if it is known. */
  get route(): string | undefined {
    return this.#work.route;
  }

  /** Whether services or jobs were called in the branch that acquired it: the store lets them in. */
  get isShared(): boolean {
    return this.#work.isShared;
  }

  get holdCount(): number {
    return this.#holds;
  }

  /** How long it is held, in whole milliseconds, for events. */
  get heldMs(): number {
    return wholeMs(this.#clock.now(), this.grantedAt);
  }

  /** Whether an ended branch has left it and the store admits no owner but that branch and what it called. */
  isLeftBeside(owner: string): boolean {
    return this.isLeft && !isAncestor(this.request.owner, owner);
  }

  get lostError(): LockLostError | undefined {
    return this.#lostError;
  }

  /** Whether it is neither lost nor released. Its lease may have ended unnoticed: see `isHeld`. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  get isHeld(): boolean {
    return this.isOpen && this.remainingMs > 0;
  }

  /** Milliseconds until the local deadline, never beyond `maxHoldMs`; 0 when it has passed. */
  get remainingMs(): number {
    return this.remainingAt(this.#clock.now());
  }

  remainingAt(now: Instant): number {
    // Both, each time: a step of the wall clock may change which one is earlier.
    return Math.max(0, Math.min(remainingMs(now, this.#deadline), remainingMs(now, this.maxHold)));
  }

  /** The message of its loss once its lease has ended. */
  get whyEnded(): string {
    return this.isFinal || remainingMs(this.#clock.now(), this.maxHold) <= 0
      ? 'The lock was lost: it was held for longer than maxHoldMs'
      : 'The lock was lost: its lease expired before it could be renewed';
  }

  /** Whether any of its holds wants the watchdog. */
  get wantsRenewal(): boolean {
    return this.#renewingHolds > 0;
  }

  /** Whether the application learns of its loss: by its signal, or by a call since. */
  get hasLossListener(): boolean {
    return this.wasLossReported || this.#controller !== undefined;
  }

  /** Made on first use: most holds are never watched. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = this.#work.createController();
      if (this.#lostError !== undefined) this.#controller.abort(this.#lostError);
    }
    return this.#controller.signal;
  }

  /** Adds a hold; it can make the lease longer and start its renewal, never the opposite. */
  addHold(leaseMs: number, renew: boolean): void {
    this.#holds += 1;
    if (renew) this.#renewingHolds += 1;
    this.wantsLonger ||= leaseMs > this.leaseMs;
    this.leaseMs = Math.max(this.leaseMs, leaseMs);
  }

  /** Adds a hold's fixed lease, until `leaseMs` from now: the latest end counts. */
  addFixedEnd(leaseMs: number): void {
    const now = this.#clock.now();
    const end = { start: now, spanMs: leaseMs };
    this.#fixedEnd = this.#fixedEnd === undefined ? end : laterDeadline(now, this.#fixedEnd, end);
    if (!this.wantsRenewal) this.wantsLonger ||= this.remainingAt(now) < leaseMs;
  }

  /** Removes a hold. Returns whether it was the last. */
  removeHold(renew: boolean): boolean {
    this.#holds -= 1;
    if (renew) {
      this.#renewingHolds -= 1;
      // So far the renewals lasted longer than any fixed lease.
      if (!this.wantsRenewal && this.#fixedEnd !== undefined) this.wantsLonger = true;
    }
    return this.#holds === 0;
  }

  /** How long the lease must last from now on, for all of its holds. */
  wantedMs(now: Instant): number {
    if (this.wantsRenewal) return this.leaseMs;
    const firstMs = this.#firstLeaseMs - elapsedMs(now, this.grantedAt);
    return this.#fixedEnd === undefined ? firstMs : Math.max(firstMs, remainingMs(now, this.#fixedEnd));
  }

  /** Adopts a lease end that the store confirmed, if it is later. */
  prolong(deadline: Deadline, isFinal: boolean): void {
    this.#deadline = laterDeadline(this.#clock.now(), this.#deadline, deadline);
    this.isClaim = false;
    this.isFinal ||= isFinal;
  }

  /** Returns the error if this call made it lost, undefined if it had ended before. */
  lose(why: string): LockLostError | undefined {
    if (!this.isOpen) return undefined;
    this.#isOpen = false;
    this.#lostError = this.located(new LockLostError(why, this));
    this.#controller?.abort(this.#lostError);
    this.#work.onLost();
    return this.#lostError;
  }

  /**
   * Gives an error of its loss or release the stack of the call that acquired it. Such errors are made in timers, and reject
   * calls that may not have been awaited.
   */
  located<E extends Error>(error: E): E {
    setCallSite(error, this.#callSite);
    return error;
  }

  /** Ends it: it can't be re-entered, and replies to renewals are ignored. */
  close(): void {
    this.#isOpen = false;
  }
}
