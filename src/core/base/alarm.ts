import { type Clock, outsideRequests, type Timer } from './clock.ts';

/** If a timer is later than this while the event loop runs, other code has cleared it: fake timers allow that. */
const clearedMs = 1_000;

/**
 * One timer for the earliest of many due times. It runs in no request's context, and keeps the process alive only while it is
 * awaited. `onDue` clears it with `disarm`, and arms it again for what is due later.
 */
export class Alarm {
  readonly #clock: Clock;
  readonly #onDue: () => void;
  #timer: Timer | undefined;
  #dueMs = Number.POSITIVE_INFINITY;
  #isAwaited = false;

  constructor(clock: Clock, onDue: () => void) {
    this.#clock = clock;
    this.#onDue = onDue;
  }

  /** Calls `onDue` at `dueMs` of the monotonic clock or earlier. `nowMs` is a recent time of that clock. */
  arm(dueMs: number, nowMs: number): void {
    if (dueMs >= this.#dueMs && nowMs <= this.#dueMs + clearedMs) return;
    this.#timer?.cancel();
    const fromMs = this.#clock.now().monoMs;
    this.#dueMs = Math.max(fromMs, Math.min(dueMs, this.#dueMs));
    const ms = Math.ceil(this.#dueMs - fromMs);
    this.#timer = outsideRequests(() => this.#clock.after(ms, this.#onDue, this.#isAwaited));
  }

  /** Whether a caller's promise depends on it. */
  setAwaited(isAwaited: boolean): void {
    this.#isAwaited = isAwaited;
    this.#timer?.setAwaited(isAwaited);
  }

  disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#dueMs = Number.POSITIVE_INFINITY;
  }
}
