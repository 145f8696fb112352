import { afterTurn, lastedMs } from '../base/clock.ts';
import { Deferred } from '../base/deferred.ts';
import { InFlight } from '../base/in-flight.ts';
import { RoundLimiter, slotsPerRound } from '../base/round-limiter.ts';
import { inBackground } from '../base/safely.ts';
import type { StoreAccess } from '../client/access.ts';
import type { Releases, ReleaseTarget } from '../client/releases.ts';
import { assertGrantable } from '../model/capabilities.ts';
import { LockLostError } from '../model/errors/failures.ts';
import { eventOf } from '../model/events.ts';
import { branchOf } from '../model/owner.ts';
import type { HoldRequest } from '../model/store.ts';
import type { Grant } from './grant.ts';
import { Watchdog } from './watchdog.ts';

/** At most this many hold ids are remembered that were taken from holders unknown here, the newest ones. */
const maxTaken = 1_000;

/** This process's grants, from the store's yes to their end: renewed, lost or released. */
export class GrantRegistry {
  readonly #access: StoreAccess;
  readonly #releases: Releases;
  readonly #watchdog: Watchdog;
  /** Hold ids that the store reported as lost before this process knew them. */
  readonly #taken = new Set<string>();
  readonly #held = new InFlight();
  readonly #releaseLimiter = new RoundLimiter();
  /** By hold id. Exists only while messages arrive that name holds: there may be thousands of both. */
  #byHoldId: Map<string, Grant> | undefined;

  constructor(access: StoreAccess, releases: Releases) {
    this.#access = access;
    this.#releases = releases;
    this.#watchdog = new Watchdog(access, (grant, why) => this.lose(grant, why));
  }

  get all(): Iterable<Grant> {
    return this.#watchdog.grants;
  }

  /** Adds a grant, with its first hold. */
  add(grant: Grant): void {
    this.#watchdog.watch(grant);
    this.#byHoldId?.set(grant.request.holdId, grant);
    this.#held.begin();
    // The message may have overtaken the grant, or its waiter was queued and granted again since. Only the store knows.
    if (this.#taken.delete(grant.request.holdId)) inBackground(this.#watchdog.renewInBackground(grant));
  }

  /** Adds a hold to a grant that is held. */
  reenter(grant: Grant, leaseMs: number, renew: boolean): void {
    const isLonger = leaseMs > grant.leaseMs;
    const startsRenewal = renew && !grant.wantsRenewal;
    grant.addHold(leaseMs, renew);
    if (!renew) grant.addFixedEnd(leaseMs);
    if (isLonger) this.#watchdog.renewSoon(grant);
    else if (startsRenewal) this.#watchdog.startRenewal(grant);
    else if (grant.wantsLonger) this.#watchdog.renewSoon(grant, grant.remainingMs - (2 / 3) * leaseMs);
  }

  /** Throws `LockConfigError` for a lease that the store does not grant. */
  async extend(grant: Grant, leaseMs: number): Promise<void> {
    assertGrantable(leaseMs, this.#access.client.capabilities);
    while (grant.passing !== undefined) await grant.passing;
    grant.extensions += 1;
    try {
      await this.#watchdog.renew(grant, leaseMs);
    } catch (error) {
      this.#access.client.report('renew', grant, error as Error);
      throw error;
    } finally {
      grant.extensions -= 1;
    }
  }

  /**
   * Declares a grant lost. If the store may still have it, it is released as well; otherwise the release of its last hold
   * shows whether the key has changed hands.
   */
  lose(grant: Grant, why: string): void {
    const mayLast = grant.isHeld || grant.unansweredRenewal !== undefined;
    const error = grant.lose(why);
    if (error === undefined) return;
    this.#forget(grant);
    grant.wasReleasedAsLost = mayLast;
    if (mayLast) this.#releases.releaseInBackground(targetOf(grant));
    this.#emitLost(grant, error);
  }

  /** The error of a lost grant, for code of the application. Looks whether its lease has expired, which nobody may have noticed yet. */
  lossOf(grant: Grant): LockLostError | undefined {
    if (!grant.isHeld) this.lose(grant, grant.whyEnded);
    grant.wasLossReported ||= grant.lostError !== undefined;
    return grant.lostError;
  }

  /** Another call took the key from a hold of this process. */
  loseById(holdId: string): void {
    this.#byHoldId ??= this.#indexForTurn();
    const grant = this.#byHoldId.get(holdId);
    if (grant !== undefined) {
      this.lose(grant, 'The lock was lost: it was released by force');
      return;
    }
    this.#taken.add(holdId);
    if (this.#taken.size > maxTaken) this.#taken.delete(this.#taken.values().next().value as string);
  }

  /** Asks the store, by a renewal, which grants still hold: messages about losses may have been missed. */
  verify(): void {
    for (const grant of this.all) if (!grant.isRenewing) inBackground(this.#watchdog.renewInBackground(grant));
  }

  /**
   * Renews the claims on a lock, some in each round of the event loop. If thousands were granted first and renewed afterwards,
   * their renewals could take longer than a claim lasts: the caller lets the store grant more when the promise has resolved,
   * or at once if there is none.
   */
  renewClaims(id: string): Promise<void> | undefined {
    let begun: Promise<void> | undefined;
    for (const grant of this.all) {
      const isDue = grant.isClaim && grant.request.id === id && !grant.isRenewing;
      if (isDue) begun = this.#watchdog.renewWithinRound(grant) ?? begun;
    }
    return begun;
  }

  /**
   * Await it before a release that nobody waits for: of very many holds, some are released in each round of the event loop.
   * Undefined if there are few.
   */
  releaseSlot(): Promise<void> | undefined {
    return this.#watchdog.size > slotsPerRound ? this.#releaseLimiter.slot() : undefined;
  }

  /**
   * Releases a grant after its last hold. Rejects with `LockLostError` if it was lost, unless the store still had it;
   * with `LockStoreError` if the store did not reply in time.
   */
  release(grant: Grant): Deferred<void> {
    grant.close();
    this.#forget(grant);
    const released = new Deferred<void>(true);
    // The key may have had another holder since, which the store does not report; and the store may be closed.
    if (grant.wasReleasedAsLost) {
      released.reject(grant.lostError);
      return released;
    }
    if (grant.lostError === undefined) {
      const { request, category, grantedAt } = grant;
      this.#access.holdTimes.record({ id: request.id, category }, lastedMs(this.#access.clock.now(), grantedAt));
    }
    let isLate = false;
    let hasStatus = false;
    let hasEnded = grant.lostError !== undefined;
    let error: LockLostError | undefined;
    this.#releases.release(targetOf(grant), {
      onStatus: (status, isRepeat) => {
        hasStatus = true;
        // While the lease lasts, nobody else had the key: an earlier call has released it.
        const isDone = status === 'absent' && isRepeat && grant.remainingMs > 0 && grant.lostError === undefined;
        if (status === 'cancelled' || (status === 'absent' && !isDone)) error = grant.lostError ?? lostAtRelease(grant);
        if (hasEnded) return;
        hasEnded = true;
        // If the reply is late, the lease may have ended since, and the key may have changed hands: that is no loss.
        if (error !== undefined && !isLate) this.#emitLost(grant, error);
        else this.#emitReleased(grant);
      },
      onSettled: () => {
        // No reply until the lease expired, or none until `close`: the lease ends soon.
        if (!hasEnded) this.#emitReleased(grant);
        hasEnded = true;
        if (!hasStatus) return;
        if (error === undefined) released.resolve();
        else released.reject(error);
      },
      onError: (failure) => {
        isLate = true;
        released.reject(grant.located(failure));
      },
    });
    return released;
  }

  /**
   * Takes out a grant that passes to another hold id: it is no longer renewed, nor can it be lost. It still counts as held
   * until the returned function is called.
   */
  withdraw(grant: Grant): () => void {
    grant.close();
    this.#watchdog.unwatch(grant);
    return () => this.#held.end();
  }

  /** From now on the store knows a grant under another hold id. */
  move(grant: Grant, request: HoldRequest): void {
    this.#byHoldId?.delete(grant.request.holdId);
    this.#byHoldId?.set(request.holdId, grant);
    grant.request = request;
  }

  /** Renews a grant now. */
  renewSoon(grant: Grant): void {
    this.#watchdog.renewSoon(grant);
  }

  /** Resolves when nothing is held any more. */
  idle(): Promise<void> {
    return this.#held.idle();
  }

  close(): void {
    this.#watchdog.close();
  }

  #indexForTurn(): Map<string, Grant> {
    const index = new Map<string, Grant>();
    for (const grant of this.all) index.set(grant.request.holdId, grant);
    afterTurn(() => {
      this.#byHoldId = undefined;
    });
    return index;
  }

  #emitReleased(grant: Grant): void {
    const { events } = this.#access;
    if (!events.has('released')) return;
    // Not a spread of `eventOf`, as for `granted` in lock/outcome.ts.
    const { key, category, traceId, origin, heldMs } = grant;
    const { mode, holdId } = origin;
    const branch = branchOf(origin.owner);
    events.emit('released', { key, category, mode, traceId, branch, holdId, heldMs });
  }

  #emitLost(grant: Grant, error: LockLostError): void {
    const { events } = this.#access;
    if (events.has('lost')) events.emit('lost', { ...eventOf(grant), heldMs: grant.heldMs, error });
  }

  #forget(grant: Grant): void {
    if (this.#watchdog.unwatch(grant)) this.#held.end();
  }
}

function targetOf({ key, category, request, longestMs }: Grant): ReleaseTarget {
  return { key, category, request, leaseMs: longestMs };
}

/** The error for a grant that the store did not have any more when it was to be released. */
export function lostAtRelease(grant: Grant): LockLostError {
  const message = 'The lock was lost: when it was released, the key had changed hands';
  return grant.located(new LockLostError(message, grant));
}
