import { elapsedMs, type Instant } from '../base/clock.ts';
import type { RoundLimiter } from '../base/round-limiter.ts';
import type { StoreAccess } from '../client/access.ts';
import { type Granted, grantedByMessage } from '../client/granted.ts';
import type { Releases } from '../client/releases.ts';
import type { WaiterGrant } from '../model/store.ts';
import type { Waiter, WaitQueue } from './local-queue.ts';

/** Callbacks of `Offers`. */
export interface OfferListener {
  /** Whether there are acquires without a reply. */
  hasPending(): boolean;
  onGranted(waiter: Waiter, granted: Granted): void;
  /** Only the store knows whether the grant still stands. */
  onUnverified(waiter: Waiter, queue: WaitQueue): void;
}

/** Delivers grants that arrive by message, or in the reply to another call, to their waiters. */
export class Offers {
  readonly #access: StoreAccess;
  readonly #releases: Releases;
  readonly #waiters: ReadonlyMap<string, Waiter>;
  readonly #limiter: RoundLimiter;
  readonly #listener: OfferListener;
  /** Grants that overtook the replies to their own acquires, or that nobody can use. */
  readonly #early: EarlyGrants;

  /** `waiters` are those in a queue, by hold id. */
  constructor(
    access: StoreAccess,
    releases: Releases,
    waiters: ReadonlyMap<string, Waiter>,
    limiter: RoundLimiter,
    listener: OfferListener,
  ) {
    this.#access = access;
    this.#releases = releases;
    this.#waiters = waiters;
    this.#limiter = limiter;
    this.#listener = listener;
    this.#early = new EarlyGrants(access.settings.claimMs);
  }

  /** Delivers a grant. In a crowd that takes a later round of the event loop: then it returns a promise. */
  offer(grant: WaiterGrant): Promise<void> | undefined {
    const receivedAt = this.#access.clock.now();
    const waiter = this.#waiters.get(grant.holdId);
    if (waiter !== undefined) return this.#limiter.run(() => this.#deliver(waiter, grant, receivedAt));
    if (this.#releases.releaseLate(grant.holdId)) return undefined;
    // Replies name the claims of a crowd again and again: only an acquire without a reply can need one later.
    if (this.#listener.hasPending()) this.#early.keep(grant, receivedAt);
    return undefined;
  }

  /** Delivers the grant that overtook the reply which queued the waiter, if there is one. */
  offerEarly(waiter: Waiter): void {
    const early = this.#early.take(waiter.task.request.holdId);
    if (early !== undefined) this.#deliver(waiter, early.grant, early.receivedAt);
  }

  /** A waiter that is gone has released whatever it was granted. */
  #deliver(waiter: Waiter, grant: WaiterGrant, receivedAt: Instant): void {
    const { queue, state, task } = waiter;
    if (queue === undefined || state === 'gone') return;
    const now = this.#access.clock.now();
    const granted = grantedByMessage(grant, queue.latest, receivedAt, now, task.request.claimMs);
    if (granted === undefined) this.#listener.onUnverified(waiter, queue);
    else this.#listener.onGranted(waiter, granted);
  }
}

interface EarlyGrant {
  readonly grant: WaiterGrant;
  readonly receivedAt: Instant;
}

/**
 * Grants by message for hold ids that do not wait yet: on a key in demand, one in five overtakes the reply that queues
 * its waiter. The release of its hold id also releases a grant that is not taken within the time of a claim.
 */
export class EarlyGrants {
  readonly #claimMs: number;
  readonly #grants = new Map<string, EarlyGrant>();

  constructor(claimMs: number) {
    this.#claimMs = claimMs;
  }

  keep(grant: WaiterGrant, receivedAt: Instant): void {
    // The map is in the order of arrival.
    for (const [holdId, early] of this.#grants) {
      if (elapsedMs(receivedAt, early.receivedAt) <= this.#claimMs) break;
      this.#grants.delete(holdId);
    }
    // A repeated grant becomes the newest: a map keeps the place of an entry that it has.
    this.#grants.delete(grant.holdId);
    this.#grants.set(grant.holdId, { grant, receivedAt });
  }

  take(holdId: string): EarlyGrant | undefined {
    const early = this.#grants.get(holdId);
    if (early !== undefined) this.#grants.delete(holdId);
    return early;
  }
}
