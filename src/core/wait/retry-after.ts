/** What is known about a lock that was not free. */
interface Refusal {
  /** What remains of the holder's lease. */
  readonly leaseRemainingMs: number;
  /** How many waiters are ahead. */
  readonly position: number;
  /** How long a turn lasts, if known from this queue or from similar holds. */
  readonly turnMs?: number | undefined;
}

const maxMs = 60_000;

/** When another try is worth it, in milliseconds, for `LockTimeoutError`. The queue alone makes it a minute at most. */
export function retryAfterMs({ leaseRemainingMs, position, turnMs = leaseRemainingMs }: Refusal): number {
  const inMs = Math.min(leaseRemainingMs, turnMs) + position * turnMs;
  return Math.ceil(Math.min(inMs, Math.max(leaseRemainingMs, maxMs)));
}

/** A waiter, with its turn once it has one. */
export interface Positioned {
  turn?: Turn | undefined;
}

export interface Turn {
  /** How many turns had ended when it joined. */
  readonly from: number;
  /** The number of its own turn. */
  number: number;
}

/** Counts the turns of one lock from the positions that replies report. */
export class QueueProgress {
  #ended = 0;

  join(waiter: Positioned, position: number): void {
    waiter.turn = { from: this.#ended, number: this.#ended + position };
  }

  /** The position may have grown: others overtook the waiter, or the store had lost it. */
  updatePosition({ turn }: Positioned, position: number): void {
    if (turn === undefined) return;
    this.#ended = Math.max(this.#ended, turn.number - position);
    turn.number = this.#ended + position;
  }

  /** The waiter's turn begins, so the one before has ended. */
  turnReached({ turn }: Positioned): void {
    if (turn !== undefined) this.#ended = Math.max(this.#ended, turn.number + 1);
  }

  /** The waiter's position now, and how many turns ended since it joined. */
  seenBy({ turn }: Positioned): { readonly position: number; readonly endedTurns: number } {
    const { from, number } = turn ?? { from: this.#ended, number: this.#ended };
    return { position: Math.max(0, number - this.#ended), endedTurns: this.#ended - from };
  }
}
