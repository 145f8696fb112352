import { lastedMs } from '../base/clock.ts';
import { Deferred } from '../base/deferred.ts';
import { InFlight } from '../base/in-flight.ts';
import type { Releases, ReleaseTarget } from '../client/releases.ts';
import { LockLostError } from '../model/errors.ts';
import { assertGrantable } from '../model/options.ts';
import type { ReleaseReply } from '../model/store.ts';
import type { Base } from '../runtime/runtime.ts';
import type { Grant } from './grant.ts';
import { Watchdog } from './watchdog.ts';

/** Of so many hold ids that were taken from holders unknown here the newest are remembered. */
const mostTaken = 1_000;

/** Keeps this process's grants, from the store's yes to their end: renewed, lost or released. */
export class GrantRegistry {
  readonly #base: Base;
  readonly #releases: Releases;
  readonly #watchdog: Watchdog;
  /** Hold ids of which the store has said that the key was taken from them, and that are not known here, or not yet. */
  readonly #taken = new Set<string>();
  readonly #held = new InFlight();

  constructor(base: Base, releases: Releases) {
    this.#base = base;
    this.#releases = releases;
    this.#watchdog = new Watchdog(base, (grant, why) => this.lose(grant, why));
  }

  get grants(): Iterable<Grant> {
    return this.#watchdog.grants;
  }

  /** Takes a grant in, with its first hold. */
  keep(grant: Grant): void {
    this.#watchdog.watch(grant);
    this.#held.begin();
    // That may have overtaken the grant; or its waiter was queued anew since, and granted. The store knows.
    if (this.#taken.delete(grant.request.holdId)) void this.#watchdog.renewInBackground(grant);
  }

  /** Re-entry: one more hold on a grant that is held. */
  reenter(grant: Grant, leaseMs: number, renew: boolean): void {
    const isLonger = leaseMs > grant.leaseMs;
    const startsRenewal = renew && !grant.wantsRenewal;
    grant.addHold(leaseMs, renew);
    if (isLonger || startsRenewal) this.#watchdog.replan(grant, isLonger);
  }

  /** Throws `LockConfigError` for a lease that the store does not grant. */
  async extend(grant: Grant, leaseMs: number): Promise<void> {
    assertGrantable(leaseMs, this.#base.store);
    await this.#watchdog.renew(grant, leaseMs);
  }

  /**
   * Declares a grant lost. Where the store may still have it, it is released all the same; else the release of its last
   * hold will tell whether somebody else has had the key.
   */
  lose(grant: Grant, why: string): void {
    const mayLast = grant.isHeld || grant.unheardOf !== undefined;
    const error = grant.lose(why);
    if (error === undefined) return;
    this.#forget(grant);
    grant.wasGivenBack = mayLast;
    if (mayLast) this.#releases.giveInBackground(leftOf(grant));
    this.#base.events.emit('lost', { ...grant.event, error });
  }

  /** The store said so: another call took the key from a hold of this process. */
  loseById(holdId: string): void {
    for (const grant of this.grants) {
      if (grant.request.holdId !== holdId) continue;
      this.lose(grant, 'The lock was lost: it was released by force');
      return;
    }
    this.#taken.add(holdId);
    if (this.#taken.size > mostTaken) this.#taken.delete(this.#taken.values().next().value as string);
  }

  /**
   * Gives a grant back after its last hold. Rejects with `LockLostError` where it had been lost, unless the store says
   * that nobody had taken the key; with `LockStoreError` where the store did not answer in time.
   */
  release(grant: Grant): Deferred<void> {
    grant.close();
    this.#forget(grant);
    const released = new Deferred<void>(true);
    // The key may have had another holder since, of whom the store says nothing; and the store may be closed by now.
    if (grant.wasGivenBack) {
      released.reject(grant.lostError);
      return released;
    }
    let isLate = false;
    const answer = (status: ReleaseReply['status']): (() => void) => {
      if (status === 'absent' || status === 'cancelled') {
        const error = grant.lostError ?? lostAtRelease(grant);
        // Nobody may await the release, as at the end of a request. Late, the key may have changed hands since.
        if (grant.lostError === undefined && !isLate) this.#base.events.emit('lost', { ...grant.event, error });
        return () => released.reject(error);
      }
      if (this.#base.events.has('released')) {
        const heldMs = lastedMs(this.#base.clock.now(), grant.grantedAt);
        this.#base.events.emit('released', { ...grant.event, heldMs });
      }
      return () => released.resolve();
    };
    this.#releases.give(leftOf(grant), answer, (error) => {
      isLate = true;
      released.reject(error);
    });
    return released;
  }

  /** Resolves when nothing is held any more. */
  idle(): Promise<void> {
    return this.#held.idle();
  }

  close(): void {
    this.#watchdog.close();
  }

  #forget(grant: Grant): void {
    if (this.#watchdog.unwatch(grant)) this.#held.end();
  }
}

function leftOf({ key, request, longestMs }: Grant): ReleaseTarget {
  return { key, request, leaseMs: longestMs };
}

function lostAtRelease(grant: Grant): LockLostError {
  const message = 'The lock was lost: when it was released, the key had changed hands';
  return new LockLostError(message, { key: grant.key, fence: grant.fence });
}
