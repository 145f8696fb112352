import type { Instant } from '../../../src/core/base/clock.ts';
import { ManualClock as KitClock } from '../../../src/testing/manual-clock.ts';

/** The clock of the test kit, from a fixed time on. Its ids are a count. */
export class ManualClock extends KitClock {
  /** What `jitter` returns: the middle, unless a test says otherwise. */
  nextJitter = 0.5;
  #jumpedMs = 0;
  #ids = 0;

  constructor() {
    super({ monoMs: 1_000, wallMs: 1_700_000_000_000 });
  }

  override now(): Instant {
    const { monoMs, wallMs } = super.now();
    return { monoMs, wallMs: wallMs + this.#jumpedMs };
  }

  /** What it is given, after all that comes without time passing. */
  async settled<T>(value: T): Promise<T> {
    await this.settle();
    return value;
  }

  override randomId(): string {
    this.#ids += 1;
    return this.#ids.toString(16).padStart(32, '0');
  }

  override jitter(): number {
    return this.nextJitter;
  }

  /** Only the wall clock goes on, or back: the machine slept, or its time was set. */
  jumpWall(ms: number): void {
    this.#jumpedMs += ms;
  }
}
