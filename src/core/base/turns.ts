import { afterRound, outsideRequests } from './clock.ts';

/** So many pieces of work begin in one round: some milliseconds, with what follows from them. */
export const turnsPerRound = 128;
/** Of very many that wait, this part begins in each round: under a load that stays, they must not become more and more. */
const partPerRound = 1 / 32;

/**
 * Spreads work over rounds of the event loop. A lock that is passed on within one process needs no input: without this, ten
 * thousand hand-offs would follow from each other in microtasks, and timers and sockets would wait for the last one.
 */
export class Turns {
  #left = turnsPerRound;
  #isCounting = false;
  /** In their order. */
  readonly #waiting: (() => void)[] = [];

  /** Returns undefined if the work may begin now; else a promise of its turn, in a later round. Turns come in order. */
  next(): Promise<void> | undefined {
    this.#count();
    if (this.#left === 0) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#left -= 1;
    return undefined;
  }

  /** Begins a piece of work, now or when it is its turn: then it returns a promise that resolves when it has begun. */
  begin(work: () => void): Promise<void> | undefined {
    const turn = this.next();
    if (turn !== undefined) return turn.then(work);
    work();
    return undefined;
  }

  /** Until the end of this round. */
  #count(): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    outsideRequests(() => afterRound(() => this.#onRoundEnd()));
  }

  #onRoundEnd(): void {
    this.#isCounting = false;
    const room = Math.max(turnsPerRound, Math.ceil(this.#waiting.length * partPerRound));
    const due = this.#waiting.splice(0, room);
    this.#left = room - due.length;
    if (due.length > 0) this.#count();
    for (const resolve of due) resolve();
  }
}
