import { AsyncResource } from 'node:async_hooks';
import { randomFillSync } from 'node:crypto';

/** A point in time on both clocks of this machine, in milliseconds. */
export interface Instant {
  /** Monotonic: never steps, may stand still while the machine sleeps. */
  readonly monoMs: number;
  /** Wall clock: goes on while the machine sleeps, may step. */
  readonly wallMs: number;
}

/** A timer that was started; `cancel` may be called at any time, more than once. */
export interface Timer {
  cancel(): void;
}

/** The source of time, timers and randomness. Tests replace it with a manual one. */
export interface Clock {
  now(): Instant;
  /** Calls `run` once after `ms`. Only a timer that a caller's promise depends on, `isAwaited`, keeps the process alive. */
  after(ms: number, run: () => void, isAwaited?: boolean): Timer;
  /** 128 random bits from a cryptographic source, as 32 hex digits. */
  randomId(): string;
  /** A number in [0, 1) for jitter; not for secrets. */
  jitter(): number;
}

/** The longest delay that Node's timers take without wrapping around. */
export const maxTimerMs: number = 2 ** 31 - 1;

/** An object without a closure: each waiter has one. */
class SystemTimer implements Timer {
  readonly #timeout: NodeJS.Timeout;

  constructor(timeout: NodeJS.Timeout) {
    this.#timeout = timeout;
  }

  cancel(): void {
    clearTimeout(this.#timeout);
  }
}

/** The real clock. */
export const systemClock: Clock = {
  now: () => ({ monoMs: performance.now(), wallMs: Date.now() }),
  after(ms, run, isAwaited = false) {
    const timeout = setTimeout(run, Math.min(Math.max(ms, 0), maxTimerMs));
    if (!isAwaited) timeout.unref();
    return new SystemTimer(timeout);
  },
  randomId: pooledIds(),
  jitter: Math.random,
};

/**
 * Milliseconds from `start` to `now`: the larger of what the two clocks say, so that neither a machine that slept
 * (monotonic stands still) nor a wall clock set back hides time that has passed.
 */
export function elapsedMs(now: Instant, start: Instant): number {
  return Math.max(now.monoMs - start.monoMs, now.wallMs - start.wallMs, 0);
}

/** Milliseconds that a wait or a hold has lasted, for reports: a wall clock that is set forward adds nothing. */
export function lastedMs(now: Instant, start: Instant): number {
  return now.monoMs - start.monoMs;
}

/** The same in whole milliseconds, for events. */
export function wholeMs(now: Instant, start: Instant): number {
  return Math.round(lastedMs(now, start));
}

/**
 * Runs a function as a microtask. This and the next two are read once, here: the tests of an application may replace the
 * global functions.
 */
export const asMicrotask: (run: () => void) => void = queueMicrotask;

/** Runs a function when what runs now is done, before any more input. */
export const afterTurn: (run: () => void) => void = process.nextTick;

/** Runs a function at the end of this round of the event loop, after all of its input. */
export const afterRound: (run: () => void) => void = setImmediate;

/** Keeps no process alive, and says so: `jest --detectOpenHandles` asks this way. */
class Loaded extends AsyncResource {
  hasRef(): boolean {
    return false;
  }
}

const loaded = new Loaded('reenlock');

/**
 * Runs a function in the async context in which this package was loaded, which is no request's. For timers and connections
 * that serve all requests: their callbacks must not count as work of the request that happened to start them.
 */
export function outsideRequests<T>(run: () => T): T {
  return loaded.runInAsyncScope(run);
}

/** Resolves after `ms`. */
export function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve);
  });
}

/** Resolves when the work has settled, either way, or after `ms`. Keeps the process alive until then. */
export function within(clock: Clock, ms: number, work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, resolve, true);
    const settled = (): void => {
      timer.cancel();
      resolve();
    };
    work.then(settled, settled);
  });
}

/** One system call fills many ids: a request takes several, and the call costs more than the id. */
function pooledIds(): () => string {
  const idBytes = 16;
  const pool = Buffer.alloc(idBytes * 256);
  let used = pool.length;
  return () => {
    if (used === pool.length) {
      randomFillSync(pool);
      used = 0;
    }
    used += idBytes;
    return pool.toString('hex', used - idBytes, used);
  };
}
