import { afterRound, type Clock, type Instant, systemClock, type Timer } from '../core/base/clock.ts';

interface ManualTimer extends Timer {
  readonly dueMs: number;
  readonly run: () => void;
}

/** A clock that stands still until a test moves it. It starts at the real time. Its ids are as random as real ones. */
export class ManualClock implements Clock {
  readonly #start: Instant;
  #passedMs = 0;
  readonly #timers = new Set<ManualTimer>();

  constructor(start: Instant = wholeMs(systemClock.now())) {
    this.#start = start;
  }

  now(): Instant {
    return { monoMs: this.#start.monoMs + this.#passedMs, wallMs: this.#start.wallMs + this.#passedMs };
  }

  after(ms: number, run: () => void): Timer {
    const timer: ManualTimer = {
      dueMs: this.#passedMs + Math.max(ms, 0),
      run,
      cancel: () => {
        this.#timers.delete(timer);
      },
      setAwaited: () => {},
    };
    this.#timers.add(timer);
    return timer;
  }

  randomId(): string {
    return systemClock.randomId();
  }

  jitter(): number {
    return 0.5;
  }

  /** Lets `ms` pass: each timer runs when it is due, in order, and promises run before and after it. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#passedMs + ms;
    await this.settle();
    for (let next = this.#nextUntil(untilMs); next !== undefined; next = this.#nextUntil(untilMs)) {
      this.#timers.delete(next);
      this.skip(Math.max(0, next.dueMs - this.#passedMs));
      next.run();
      await this.settle();
    }
    this.skip(Math.max(0, untilMs - this.#passedMs));
    await this.settle();
  }

  /** Lets all promises run that need no time to pass. */
  settle(): Promise<void> {
    return settle();
  }

  /** Lets `ms` pass, but no timer or promise runs: as in a blocked event loop, or a stopped process. */
  skip(ms: number): void {
    this.#passedMs += ms;
  }

  /** How many timers were started and have neither run nor been cancelled. */
  get timerCount(): number {
    return this.#timers.size;
  }

  #nextUntil(untilMs: number): ManualTimer | undefined {
    let next: ManualTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.dueMs <= untilMs && (next === undefined || timer.dueMs < next.dueMs)) next = timer;
    }
    return next;
  }
}

/** Fractions would make durations that a test knows inexact. */
function wholeMs({ monoMs, wallMs }: Instant): Instant {
  return { monoMs: Math.ceil(monoMs), wallMs: Math.ceil(wallMs) };
}

/** Lets all promises run that need no time to pass. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 2; round++) await new Promise<void>((resolve) => afterRound(resolve));
}
