import { AsyncResource } from 'node:async_hooks';
import { randomFillSync } from 'node:crypto';
import * as timers from 'node:timers';
import { inBackground, safely } from './safely.ts';
import { type Listed, SwapList } from './swap-list.ts';

/** A point in time on both clocks of this machine, in milliseconds. */
export interface Instant {
  /** Monotonic: never steps, may stand still while the machine sleeps. */
  readonly monoMs: number;
  /** Wall clock: goes on while the machine sleeps, may step. */
  readonly wallMs: number;
}

/** A timer that was started; its methods may be called at any time, more than once. */
export interface Timer {
  cancel(): void;
  /** Changes whether it keeps the process alive. */
  setAwaited(isAwaited: boolean): void;
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

/** The longest delay of Node's timers: a longer one wraps around. */
export const maxTimerMs: number = 2 ** 31 - 1;

/** `setTimeout` and `clearTimeout` as of the last started timer: fake timers replace them. */
interface TimeSource {
  readonly start: typeof setTimeout;
  readonly clear: typeof clearTimeout;
}

/** No closure, since each waiter has one. */
class SystemTimer implements Timer, Listed {
  listIndex = -1;
  timeout: NodeJS.Timeout | undefined;
  readonly clock: SystemClock;
  readonly dueMs: number;
  readonly run: () => void;
  isAwaited: boolean;

  constructor(clock: SystemClock, dueMs: number, run: () => void, isAwaited: boolean) {
    this.clock = clock;
    this.dueMs = dueMs;
    this.run = run;
    this.isAwaited = isAwaited;
  }

  cancel(): void {
    this.clock.cancel(this);
  }

  setAwaited(isAwaited: boolean): void {
    this.isAwaited = isAwaited;
    if (isAwaited) this.timeout?.ref();
    else this.timeout?.unref();
  }
}

/**
 * The real clock. Fake timers of an application's tests drive it. When they are installed or removed, its time continues, and
 * earlier timers stay due at the same time: otherwise the background work of a `Locks` that several tests share would wait
 * forever for a timer that nobody runs.
 */
class SystemClock implements Clock {
  #source: TimeSource = { start: setTimeout, clear: clearTimeout };
  /** Added to `performance.now()`, and the last sum. */
  #offsetMs = 0;
  #latestMs = 0;
  readonly #pending = new SwapList<SystemTimer>();
  readonly randomId = pooledIds();
  readonly jitter = Math.random;

  now(): Instant {
    if (setTimeout !== this.#source.start) this.#changeSource();
    this.#latestMs = performance.now() + this.#offsetMs;
    return { monoMs: this.#latestMs, wallMs: Date.now() };
  }

  after(ms: number, run: () => void, isAwaited = false): Timer {
    const delayMs = Math.min(Math.max(ms, 0), maxTimerMs);
    const timer = new SystemTimer(this, this.now().monoMs + delayMs, run, isAwaited);
    this.#pending.add(timer);
    this.#start(timer, delayMs);
    return timer;
  }

  cancel(timer: SystemTimer): void {
    if (this.#pending.delete(timer)) this.#source.clear(timer.timeout);
  }

  /** Called by Node's timer. */
  onDue(timer: SystemTimer): void {
    this.#pending.delete(timer);
    safely(timer.run);
  }

  #start(timer: SystemTimer, delayMs: number): void {
    timer.timeout = this.#source.start(runTimer, delayMs, timer);
    if (!timer.isAwaited) timer.timeout.unref();
  }

  #changeSource(): void {
    const { clear } = this.#source;
    this.#source = { start: setTimeout, clear: clearTimeout };
    this.#offsetMs = this.#latestMs - performance.now();
    outsideRequests(() => {
      for (const timer of this.#pending) {
        clear(timer.timeout);
        this.#start(timer, Math.max(timer.dueMs - this.#latestMs, 0));
      }
    });
  }
}

function runTimer(timer: SystemTimer): void {
  timer.clock.onDue(timer);
}

/**
 * Milliseconds from `start` to `now`: the larger value of the two clocks. Neither a machine that slept (the monotonic clock
 * stands still) nor a wall clock that was set back hides time that has passed.
 */
export function elapsedMs(now: Instant, start: Instant): number {
  return Math.max(now.monoMs - start.monoMs, now.wallMs - start.wallMs, 0);
}

/** How long a wait or a hold has lasted, for reports, in milliseconds: a wall clock that is set forward adds nothing. */
export function lastedMs(now: Instant, start: Instant): number {
  return now.monoMs - start.monoMs;
}

/** The same in whole milliseconds, for events. */
export function wholeMs(now: Instant, start: Instant): number {
  return Math.round(lastedMs(now, start));
}

// Read once: the tests of an application may replace the functions. Jest may have replaced the global ones before this is loaded.
const { setImmediate: afterInput } = timers;
const { nextTick } = process;
const settled = Promise.resolve();

/** Runs a function as a microtask. */
export function asMicrotask(run: () => void): void {
  inBackground(settled.then(run));
}

/** Runs a function after the current tick, before any more input. */
export function afterTurn(run: () => void): void {
  nextTick(safely, run);
}

/** Runs a function at the end of this round of the event loop, after all of its input. */
export function afterRound(run: () => void): void {
  afterInput(safely, run);
}

/** Keeps no process alive. `hasRef` lets `jest --detectOpenHandles` see that. */
class Loaded extends AsyncResource {
  hasRef(): boolean {
    return false;
  }
}

const loaded = new Loaded('reenlock');

/**
 * Runs a function in the async context in which this package was loaded, outside any request. For timers and connections that
 * serve all requests: their callbacks must not count as work of the request that happened to start them.
 */
export function outsideRequests<T>(run: () => T): T {
  return loaded.runInAsyncScope(run);
}

export const systemClock: Clock = new SystemClock();

/** Resolves after `ms`. */
export function pause(clock: Clock, ms: number, isAwaited = false): Promise<void> {
  return new Promise((resolve) => {
    clock.after(ms, resolve, isAwaited);
  });
}

/**
 * Settles as `reply` does, or rejects with `noReply` after `ms`, since a client library may never settle. The reply clears the
 * timer. One that comes after that is passed to `onLate`.
 */
export function inTime<T>(
  clock: Clock,
  ms: number,
  reply: Promise<T>,
  onLate: (reply: T) => void = () => {},
  noReply = (): Error => new Error(`Expected a reply within ${Math.round(ms)} ms, got none`),
): Promise<T> {
  return new Promise((resolve, reject) => {
    let take: (reply: T) => void = resolve;
    const timer = clock.after(ms, () => {
      take = onLate;
      reject(noReply());
    });
    reply.then((value) => take(value), reject).finally(() => timer.cancel());
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

/** One system call fills many ids: a request needs several, and the call costs more than an id. */
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
