import { afterRound, asMicrotask } from '../base/clock.ts';

/** So many messages may be on their way within one turn of the event loop. */
const perTurn = 256;

/**
 * Delivers messages in their order, each in a microtask of its own. Of very many, the rest follows in later rounds of the
 * event loop, so that other work is not held up.
 */
export class Outbox {
  readonly #later: (() => void)[] = [];
  #pending = 0;
  #isWaiting = false;

  /** Calls `deliver` soon; not before other work had its turn if `canWait`. */
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
