import { setImmediate as turn } from 'node:timers/promises';
import type { Clock, Instant, Timer } from '../../../src/core/base/clock.ts';

interface ManualTimer extends Timer {
  readonly dueMs: number;
  readonly run: () => void;
}

/** A clock that only goes on when a test says so. It starts at a fixed time, and its ids are a count. */
export class ManualClock implements Clock {
  /** What `jitter` answers: in the middle unless a test says otherwise. */
  nextJitter = 0.5;
  #monoMs = 1_000;
  #wallMs = 1_700_000_000_000;
  #ids = 0;
  readonly #timers = new Set<ManualTimer>();

  now(): Instant {
    return { monoMs: this.#monoMs, wallMs: this.#wallMs };
  }

  after(ms: number, run: () => void): Timer {
    const timer: ManualTimer = {
      dueMs: this.#monoMs + Math.max(ms, 0),
      run,
      cancel: () => {
        this.#timers.delete(timer);
      },
    };
    this.#timers.add(timer);
    return timer;
  }

  randomId(): string {
    this.#ids += 1;
    return this.#ids.toString(16).padStart(32, '0');
  }

  jitter(): number {
    return this.nextJitter;
  }

  /** How many timers were started and have neither run nor been cancelled. */
  get timerCount(): number {
    return this.#timers.size;
  }

  /** Lets all promises run that need no time to pass. */
  async settle(): Promise<void> {
    await turn();
    await turn();
  }

  /** Time passes: each timer runs when it is due, in order, and promises run before and after it. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#monoMs + ms;
    await this.settle();
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      this.#timers.delete(next);
      this.skip(Math.max(0, next.dueMs - this.#monoMs));
      next.run();
      await this.settle();
    }
    this.skip(Math.max(0, untilMs - this.#monoMs));
    await this.settle();
  }

  /** Time passes, and no timer or promise runs: a blocked event loop, or a stopped process. */
  skip(ms: number): void {
    this.#monoMs += ms;
    this.#wallMs += ms;
  }

  /** Only the wall clock goes on, or back: the machine slept, or its time was set. */
  jumpWall(ms: number): void {
    this.#wallMs += ms;
  }

  #next(untilMs: number): ManualTimer | undefined {
    let next: ManualTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueMs <= untilMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer;
    }
    return next;
  }
}
