import { AsyncResource } from 'node:async_hooks';
import { randomFillSync } from 'node:crypto';
import { safely } from './safely.ts';
import { type Listed, SwapList } from './swap-list.ts';

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

/** What `setTimeout` and `clearTimeout` were when timers were started last: fake timers replace them. */
interface TimeSource {
  readonly start: typeof setTimeout;
  readonly clear: typeof clearTimeout;
}

/** An object without a closure: each waiter has one. */
class SystemTimer implements Timer, Listed {
  listIndex = -1;
  timeout: NodeJS.Timeout | undefined;
  readonly clock: SystemClock;
  readonly dueMs: number;
  readonly run: () => void;
  readonly isAwaited: boolean;

  constructor(clock: SystemClock, dueMs: number, run: () => void, isAwaited: boolean) {
    this.clock = clock;
    this.dueMs = dueMs;
    this.run = run;
    this.isAwaited = isAwaited;
  }

  cancel(): void {
    this.clock.cancel(this);
  }
}

/**
 * The real clock. Fake timers of an application's tests drive it. When they are installed or removed, its time goes on from
 * where it was, and what was started before is due at the same time as before: otherwise the background work of a `Locks`
 * that a test shares would wait for ever for a timer that nobody runs any more.
 */
class SystemClock implements Clock {
  #source: TimeSource = { start: setTimeout, clear: clearTimeout };
  /** What is added to `performance.now()`, and the last sum. */
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

// Read once, here: the tests of an application may replace the global functions.
const { queueMicrotask: enqueue, setImmediate: afterInput } = globalThis;
const { nextTick } = process;

/** Runs a function as a microtask. */
export function asMicrotask(run: () => void): void {
  enqueue(() => safely(run));
}

/** Runs a function when what runs now is done, before any more input. */
export function afterTurn(run: () => void): void {
  nextTick(safely, run);
}

/** Runs a function at the end of this round of the event loop, after all of its input. */
export function afterRound(run: () => void): void {
  afterInput(safely, run);
}

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

export const systemClock: Clock = new SystemClock();

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
