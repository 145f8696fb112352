/** What is known of a lock that could not be had. */
interface Refusal {
  /** What remains of the holder's lease. */
  readonly leaseRemainingMs: number;
  /** How many wait before it. */
  readonly position: number;
  /** How long a turn lasts, if one was seen, or if holds like it are known. */
  readonly turnMs?: number | undefined;
}

const maxMs = 60_000;

/** When another try is worth it, in milliseconds, as `LockTimeoutError` says it. The queue alone makes it a minute at most. */
export function retryAfterMs({ leaseRemainingMs, position, turnMs = leaseRemainingMs }: Refusal): number {
  const inMs = Math.min(leaseRemainingMs, turnMs) + position * turnMs;
  return Math.ceil(Math.min(inMs, Math.max(leaseRemainingMs, maxMs)));
}

/** A waiter, with its turn once it has one. */
export interface Positioned {
  turn?: Turn | undefined;
}

export interface Turn {
  /** How many turns were over when it came. */
  readonly from: number;
  /** The number of its own turn. */
  number: number;
}

/** Counts the turns of one lock, from what its waiters are told of their positions. */
export class QueueProgress {
  #over = 0;

  join(waiter: Positioned, position: number): void {
    waiter.turn = { from: this.#over, number: this.#over + position };
  }

  /** Its position may have grown: others overtook it, or the store had lost it. */
  updatePosition({ turn }: Positioned, position: number): void {
    if (turn === undefined) return;
    this.#over = Math.max(this.#over, turn.number - position);
    turn.number = this.#over + position;
  }

  /** Its own turn has come: the one before is over. */
  turnReached({ turn }: Positioned): void {
    if (turn !== undefined) this.#over = Math.max(this.#over, turn.number + 1);
  }

  /** Its position now, and how many turns were over since it came. */
  seenBy({ turn }: Positioned): { readonly position: number; readonly over: number } {
    const { from, number } = turn ?? { from: this.#over, number: this.#over };
    return { position: Math.max(0, number - this.#over), over: this.#over - from };
  }
}
