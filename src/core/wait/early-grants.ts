import { elapsedMs, type Instant } from '../base/clock.ts';
import type { StoreGrant } from '../model/store.ts';

interface EarlyGrant {
  readonly grant: StoreGrant;
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

  keep(grant: StoreGrant, receivedAt: Instant): void {
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
