import { afterRound, outsideRequests } from './clock.ts';

/** At most this many pieces of work begin in one round: a few milliseconds, including what follows from them. */
export const slotsPerRound = 128;
/** If very many wait, this share of them begins in each round: under a steady load they must not pile up. */
const partPerRound = 1 / 32;

/**
 * Limits how much work begins in one round of the event loop. A hand-off within one process needs no input: without this,
 * ten thousand of them would run as one chain of microtasks, and timers and sockets would wait for the last one.
 */
export class RoundLimiter {
  #left = slotsPerRound;
  #isCounting = false;
  /** In order of arrival. */
  readonly #waiting: (() => void)[] = [];

  /** Returns undefined if the work may begin now; otherwise a promise of its slot in a later round, in order of arrival. */
  slot(): Promise<void> | undefined {
    this.#count();
    if (this.#left === 0) return new Promise((resolve) => this.#waiting.push(resolve));
    this.#left -= 1;
    return undefined;
  }

  /** Begins a piece of work, now or in its slot. Returns a promise that resolves when it has begun; undefined if it has. */
  run(work: () => void): Promise<void> | undefined {
    const slot = this.slot();
    if (slot !== undefined) return slot.then(work);
    work();
    return undefined;
  }

  /** Counts until the end of this round. */
  #count(): void {
    if (this.#isCounting) return;
    this.#isCounting = true;
    outsideRequests(() => afterRound(() => this.#onRoundEnd()));
  }

  #onRoundEnd(): void {
    this.#isCounting = false;
    const room = Math.max(slotsPerRound, Math.ceil(this.#waiting.length * partPerRound));
    const due = this.#waiting.splice(0, room);
    this.#left = room - due.length;
    if (due.length > 0) this.#count();
    for (const resolve of due) resolve();
  }
}
