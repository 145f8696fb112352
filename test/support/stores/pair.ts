import type { Gate } from '../gate.ts';
import type { ServerStage } from '../http/server-stage.ts';

/**
 * Two requests for one key, `k`: `first` has noted `first in` and goes on when the test says so, `second` stands in the
 * queue, notes `second in` when its handler runs, and answers.
 */
export class Pair<First> {
  readonly stage: ServerStage;
  readonly first: First;
  readonly second: Promise<unknown>;
  readonly #go: Gate;

  protected constructor(stage: ServerStage, first: First, second: Promise<unknown>, go: Gate) {
    this.stage = stage;
    this.first = first;
    this.second = second;
    this.#go = go;
  }

  /** Lets the first request go on. */
  go(): void {
    this.#go.open();
  }

  /** Shows that the first request holds the key, and the second one waits. */
  async expectHeld(): Promise<void> {
    expect(await this.stage.holder('k')).toBe('first');
    expect(await this.stage.waiters('k')).toEqual(['second']);
    expect(this.stage.journal).not.toContain('second in');
  }

  /** As `expectHeld`, after time for a round trip: whatever was about to happen on its own has happened. */
  async expectStillHeld(): Promise<void> {
    await this.stage.visit('/nowhere', 'passer-by');
    await this.expectHeld();
  }

  /** Shows that the second request got the key, and was answered. */
  async expectHandedOn(): Promise<void> {
    await this.stage.until('second in');
    await this.second;
    this.stage.expectOrder('first in', 'second in');
    await this.stage.free('k');
  }
}
