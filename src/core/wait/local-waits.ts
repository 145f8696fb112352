import { elapsedMs, maxTimerMs, type Timer, wholeMs } from '../base/clock.ts';
import type { InFlight } from '../base/in-flight.ts';
import type { StoreAccess } from '../client/access.ts';
import { LocksClosedError, LockTimeoutError } from '../model/errors/refusals.ts';
import { eventOf } from '../model/events.ts';
import { tooManyWaiters, typicalMs } from './refusals.ts';
import { retryAfterMs } from './retry-after.ts';
import type { AcquireTask, Obstacle } from './task.ts';

/** Acquires that wait within their scope before the store is asked. */
export class LocalWaits {
  readonly #access: StoreAccess;
  readonly #inFlight: InFlight;
  readonly #isFull: () => boolean;
  /** Each task with the function that ends its wait. */
  readonly #waits = new Map<AcquireTask, (error?: Error) => void>();

  constructor(access: StoreAccess, inFlight: InFlight, isFull: () => boolean) {
    this.#access = access;
    this.#inFlight = inFlight;
    this.#isFull = isFull;
  }

  get size(): number {
    return this.#waits.size;
  }

  get tasks(): Iterable<AcquireTask> {
    return this.#waits.keys();
  }

  /** Waits until nothing is in the way, and calls `onFree`; or gives up as a wait in the store does. */
  add(task: AcquireTask, obstacle: Obstacle, onFree: () => void): void {
    const { clock, events, holdTimes } = this.#access;
    const laterMs = retryAfterMs({ ...obstacle, position: 0, turnMs: typicalMs(task, holdTimes) });
    if (task.waitMs === 0) {
      task.onRefused(laterMs);
      return;
    }
    if (this.#isFull()) {
      task.onFailed(tooManyWaiters(task));
      return;
    }
    this.#inFlight.begin();
    let timer: Timer | undefined;
    const end = (error?: Error): void => {
      if (!this.#waits.delete(task)) return;
      timer?.cancel();
      obstacle.unlisten();
      task.cancellation.unlisten();
      this.#inFlight.end();
      if (error === undefined) onFree();
      else task.onFailed(error);
    };
    const onDue = (): void => {
      const { key, category, waitMs, startedAt } = task;
      const waitedMs = wholeMs(clock.now(), startedAt);
      if (waitedMs < waitMs) start();
      else end(new LockTimeoutError({ key, category, waitedMs, retryAfterMs: laterMs, heldBy: 'branch' }));
    };
    // Keeps the process alive, as each timer does that a caller's promise depends on. Cleared when the wait ends.
    const start = (): void => {
      const leftMs = Math.max(1, task.waitMs - elapsedMs(clock.now(), task.startedAt));
      timer = clock.after(Math.min(leftMs, maxTimerMs), onDue, true);
    };
    this.#waits.set(task, end);
    start();
    task.onQueued();
    task.cancellation.listen(end);
    obstacle.listen(end);
    if (events.has('waiting')) events.emit('waiting', eventOf(task));
    if (task.cancellation.waitError !== undefined) end(task.cancellation.waitError);
  }

  /** Refuses those that do not re-enter what is held around them. */
  close(): void {
    for (const [task, end] of [...this.#waits]) if (!task.isBeneathHold) end(new LocksClosedError(task));
  }
}
