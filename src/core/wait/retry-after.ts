/** What is known of a lock that somebody could not have. */
interface Refusal {
  /** What is left of the holder's lease. */
  readonly leaseRemainingMs: number;
  /** How many wait before it. */
  readonly position: number;
  /** How long a turn lasts, where that was seen. */
  readonly turnMs?: number | undefined;
}

const mostMs = 60_000;

/** When another try is worth it, in milliseconds, as `LockTimeoutError` says it. The queue alone makes it a minute at most. */
export function retryAfterMs({ leaseRemainingMs, position, turnMs = leaseRemainingMs }: Refusal): number {
  const inMs = Math.min(leaseRemainingMs, turnMs) + position * turnMs;
  return Math.ceil(Math.min(inMs, Math.max(leaseRemainingMs, mostMs)));
}

/** Who waits, with its place once it has one. */
export interface Placed {
  place?: Place | undefined;
}

interface Place {
  /** How many turns were over when it came. */
  readonly from: number;
  /** The number of its own turn. */
  turn: number;
}

/** The turns of one lock, counted by what its waiters are told of how many are before them. */
export class Turns {
  #over = 0;

  joined(waiter: Placed, position: number): void {
    waiter.place = { from: this.#over, turn: this.#over + position };
  }

  /** It was told again how many are before it: more, where others came before it or the store had lost it. */
  told({ place }: Placed, position: number): void {
    if (place === undefined) return;
    this.#over = Math.max(this.#over, place.turn - position);
    place.turn = this.#over + position;
  }

  /** Its own turn has come: the one before is over. */
  came({ place }: Placed): void {
    if (place !== undefined) this.#over = Math.max(this.#over, place.turn + 1);
  }

  /** How many wait before it still, and how many turns were over since it came. */
  seenBy({ place }: Placed): { readonly position: number; readonly over: number } {
    const { from, turn } = place ?? { from: this.#over, turn: this.#over };
    return { position: Math.max(0, turn - this.#over), over: this.#over - from };
  }
}
