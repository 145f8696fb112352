import { elapsedMs, type Instant } from '../base/clock.ts';
import type { Turns } from '../base/turns.ts';
import type { StoreAccess } from '../client/access.ts';
import { type Granted, grantedByMessage } from '../client/granted.ts';
import type { Releases } from '../client/releases.ts';
import type { WaiterGrant } from '../model/store.ts';
import type { Waiter, WaitQueue } from './local-queue.ts';

/** Hears what became of an offer. */
export interface OfferListener {
  /** Whether there are acquires without a reply. */
  hasPending(): boolean;
  onGranted(waiter: Waiter, granted: Granted): void;
  /** Only the store knows whether the grant still stands. */
  onDoubt(waiter: Waiter, queue: WaitQueue): void;
}

/** Grants that come by message, or in the reply to another call, on their way to their waiters. */
export class Offers {
  readonly #access: StoreAccess;
  readonly #releases: Releases;
  readonly #waiters: ReadonlyMap<string, Waiter>;
  readonly #turns: Turns;
  readonly #listener: OfferListener;
  /** Grants that overtook the replies to their own acquires, or that nobody can use. */
  readonly #early: EarlyGrants;

  /** `waiters` are those in a queue, by hold id. */
  constructor(
    access: StoreAccess,
    releases: Releases,
    waiters: ReadonlyMap<string, Waiter>,
    turns: Turns,
    listener: OfferListener,
  ) {
    this.#access = access;
    this.#releases = releases;
    this.#waiters = waiters;
    this.#turns = turns;
    this.#listener = listener;
    this.#early = new EarlyGrants(access.settings.claimMs);
  }

  /** Tells the waiter. In a crowd that is in a later round of the event loop: returns a promise of it then. */
  offer(grant: WaiterGrant): Promise<void> | undefined {
    const receivedAt = this.#access.clock.now();
    const waiter = this.#waiters.get(grant.holdId);
    if (waiter !== undefined) return this.#turns.begin(() => this.#tell(waiter, grant, receivedAt));
    if (this.#releases.releaseLate(grant.holdId)) return undefined;
    // Replies name the claims of a crowd again and again: only an acquire without a reply can need one later.
    if (this.#listener.hasPending()) this.#early.keep(grant, receivedAt);
    return undefined;
  }

  /** Tells a waiter that is queued now of the grant that came before that reply, if one did. */
  offerEarly(waiter: Waiter): void {
    const early = this.#early.take(waiter.task.request.holdId);
    if (early !== undefined) this.#tell(waiter, early.grant, early.receivedAt);
  }

  /** A waiter that is gone by then has released what it was granted. */
  #tell(waiter: Waiter, grant: WaiterGrant, receivedAt: Instant): void {
    const { queue, state, task } = waiter;
    if (queue === undefined || state === 'gone') return;
    const now = this.#access.clock.now();
    const granted = grantedByMessage(grant, queue.latest, receivedAt, now, task.request.claimMs);
    if (granted === undefined) this.#listener.onDoubt(waiter, queue);
    else this.#listener.onGranted(waiter, granted);
  }
}

interface EarlyGrant {
  readonly grant: WaiterGrant;
  readonly receivedAt: Instant;
}

/**
 * Grants by message for hold ids that do not wait yet: on a key in demand, one in five overtakes the reply that says that
 * its waiter is queued. A grant that is not taken within the time of a claim is released by the release of its hold id.
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
