import { afterRound, asMicrotask } from '../base/clock.ts';

/** At most this many messages are delivered within one turn of the event loop. */
const perTurn = 256;

/**
 * Delivers messages in order, each in a new microtask. If there are very many, the rest follows in later rounds of the event
 * loop, which lets other work run.
 */
export class Outbox {
  readonly #later: (() => void)[] = [];
  #pending = 0;
  #isWaiting = false;

  /** Calls `deliver` soon; after other work if `canWait`. */
  send(deliver: () => void, canWait: boolean): void {
    if (canWait || this.#isWaiting || this.#pending >= perTurn) {
      this.#later.push(deliver);
      this.#waitForRound();
      return;
    }
    this.#pending += 1;
    asMicrotask(() => {
      this.#pending -= 1;
      deliver();
    });
  }

  #waitForRound(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    afterRound(() => {
      this.#isWaiting = false;
      for (const deliver of this.#later.splice(0, perTurn)) this.send(deliver, false);
      if (this.#later.length > 0) this.#waitForRound();
    });
  }
}
