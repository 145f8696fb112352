import type { Clock, Timer } from '../core/base/clock.ts';

/**
 * Does some work again and again, the first time after `firstMs`, until it is stopped. The work returns for how many
 * milliseconds to pause, and must not reject.
 */
export class Loop {
  readonly #clock: Clock;
  readonly #work: () => Promise<number>;
  /** Runs between two turns; started here, cancelled by `stop`. */
  #timer: Timer | undefined;
  #isStopped = false;

  constructor(clock: Clock, work: () => Promise<number>, firstMs = 0) {
    this.#clock = clock;
    this.#work = work;
    this.#next(firstMs);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  #next(ms: number): void {
    this.#timer = this.#clock.after(ms, () => this.#turn());
  }

  async #turn(): Promise<void> {
    const pauseMs = await this.#work();
    if (!this.#isStopped) this.#next(pauseMs);
  }
}
