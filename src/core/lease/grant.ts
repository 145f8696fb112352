import type { Instant } from '../base/clock.ts';
import { type Deadline, laterDeadline, remainingMs } from '../base/deadline.ts';
import type { Listed } from '../base/swap-list.ts';
import type { Granted } from '../client/granted.ts';
import { LockLostError } from '../model/errors.ts';
import type { LockEvent } from '../model/events.ts';
import type { AcquireSettings, AcquireTarget } from '../model/options.ts';
import type { HoldRequest } from '../model/store.ts';
import type { OwnerKind } from '../model/types.ts';
import type { Scope } from '../scope/scope.ts';
import { ScopedController } from '../scope/scoped-controller.ts';

/**
 * One hold as the store knows it, for one scope. The scope's re-entrant holds share it: the store hears of the last one's
 * release. It goes one way: held, then lost or released.
 */
export class Grant implements Listed {
  /** Among the grants of its process. */
  place = -1;
  readonly key: string;
  readonly request: HoldRequest;
  readonly fence: number;
  readonly grantedAt: Instant;
  readonly ownerKind: OwnerKind;
  /** Whether the store still counts it as a claim. */
  isClaim: boolean;
  /** When the watchdog renews it next, on the monotonic clock; never, for a fixed lease. */
  renewAtMs: number = Number.POSITIVE_INFINITY;
  isRenewing = false;
  /** When the last renewal was sent, until it is answered: the store may hold it for longer than is known here. */
  unheardOf: Instant | undefined;
  /** Whether it was released when it was lost. */
  wasGivenBack = false;
  /** Whether a re-entry asked for a longer lease, and the store was not asked for it yet. */
  wantsLonger = false;
  /** Whether its lease reaches to `maxHoldMs`: no renewal can make it longer. */
  isFinal: boolean;
  leaseMs: number;
  /** The longest lease that the store was ever asked for: what it may still hold when nothing is heard of it. */
  longestMs: number;
  readonly maxHold: Deadline;
  readonly #scope: Scope;
  #deadline: Deadline;
  #holds = 0;
  #renewingHolds = 0;
  #isOpen = true;
  #lostError: LockLostError | undefined;
  #controller: ScopedController | undefined;

  constructor(
    scope: Scope,
    key: string,
    request: HoldRequest,
    settings: AcquireSettings & AcquireTarget,
    granted: Granted,
  ) {
    this.#scope = scope;
    this.key = key;
    this.request = request;
    this.ownerKind = settings.owner;
    this.fence = granted.fence;
    this.isClaim = granted.isClaim;
    this.leaseMs = settings.leaseMs;
    this.longestMs = settings.leaseMs;
    this.isFinal = !granted.isClaim && settings.leaseMs >= settings.maxHoldMs;
    this.grantedAt = granted.receivedAt;
    this.maxHold = { start: this.grantedAt, spanMs: settings.maxHoldMs };
    this.#deadline = granted.deadline;
  }

  /** What every event about it says. */
  get event(): LockEvent {
    return { key: this.key, owner: this.request.owner, holdId: this.request.holdId };
  }

  get holdCount(): number {
    return this.#holds;
  }

  get lostError(): LockLostError | undefined {
    return this.#lostError;
  }

  /** Whether nobody has ended it yet; the lease may have run out all the same, see `isHeld`. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  get isHeld(): boolean {
    return this.isOpen && this.remainingMs > 0;
  }

  /** Milliseconds until the local deadline, never beyond `maxHoldMs`; 0 when it has passed. */
  get remainingMs(): number {
    return this.remainingAt(this.#scope.runtime.clock.now());
  }

  remainingAt(now: Instant): number {
    // Both, each time: which of them is the earlier one may change with a step of the wall clock.
    return Math.max(0, Math.min(remainingMs(now, this.#deadline), remainingMs(now, this.maxHold)));
  }

  /** Whether any of its holds wants the watchdog. */
  get wantsRenewal(): boolean {
    return this.#renewingHolds > 0;
  }

  /** Made when first asked for: most holds are never watched. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new ScopedController(this.#scope);
      if (this.#lostError !== undefined) this.#controller.abort(this.#lostError);
    }
    return this.#controller.signal;
  }

  /** One more hold; it can make the lease longer and start its renewal, never the opposite. */
  addHold(leaseMs: number, renew: boolean): void {
    this.#holds += 1;
    if (renew) this.#renewingHolds += 1;
    this.wantsLonger ||= leaseMs > this.leaseMs;
    this.leaseMs = Math.max(this.leaseMs, leaseMs);
  }

  /** One hold less; answers whether it was the last. */
  removeHold(renew: boolean): boolean {
    this.#holds -= 1;
    if (renew) this.#renewingHolds -= 1;
    return this.#holds === 0;
  }

  /** Takes over a lease end that the store confirmed, if it is later. */
  prolong(deadline: Deadline, isFinal: boolean): void {
    this.#deadline = laterDeadline(this.#scope.runtime.clock.now(), this.#deadline, deadline);
    this.isClaim = false;
    this.isFinal ||= isFinal;
  }

  /** Answers the error when this call made it lost, undefined when it was over before. */
  lose(why: string): LockLostError | undefined {
    if (!this.isOpen) return undefined;
    this.#isOpen = false;
    this.#lostError = new LockLostError(why, { key: this.key, fence: this.fence });
    this.#controller?.abort(this.#lostError);
    return this.#lostError;
  }

  /** From here on it can't be re-entered, and no renewal's answer counts. */
  close(): void {
    this.#isOpen = false;
  }
}
