import { Alarm } from '../base/alarm.ts';
import { asMicrotask, type Clock, type Instant, type Timer } from '../base/clock.ts';
import { safely } from '../base/safely.ts';
import { type Listed, SwapList } from '../base/swap-list.ts';
import { hasCode } from '../model/errors/by-code.ts';
import { LockStoreError } from '../model/errors/failures.ts';

class PendingCall implements Listed {
  listIndex = -1;
  readonly operation: string;
  readonly sentMs: number;
  readonly dueMs: number;
  readonly reject: (error: LockStoreError) => void;

  constructor(operation: string, sentMs: number, dueMs: number, reject: (error: LockStoreError) => void) {
    this.operation = operation;
    this.sentMs = sentMs;
    this.dueMs = dueMs;
    this.reject = reject;
  }
}

/**
 * Gives each store call a deadline, since a client library may never settle its promise. One timer serves all calls:
 * a call starts it, it is started again while any call is pending, `close` clears it once none is. It keeps the process alive
 * while a call is pending: if the client has no connection, nothing else would.
 */
export class CallDeadlines {
  readonly #clock: Clock;
  readonly #pending = new SwapList<PendingCall>();
  readonly #alarm: Alarm;
  /** Runs from a passed deadline until replies that have arrived are read; cleared with the alarm. */
  #lastRound: Timer | undefined;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#alarm = new Alarm(clock, () => this.#onDue());
  }

  /**
   * Makes a call. `onError` is called with a `LockStoreError` if it failed, or did not return within `timeoutMs`; the call may
   * still take effect then, and the caller must undo it. `onReply` is called with the reply, however late it is.
   */
  start<T>(
    operation: string,
    sent: Instant,
    timeoutMs: number,
    call: () => Promise<T>,
    onReply: (reply: T) => void,
    onError: (error: LockStoreError) => void,
  ): void {
    // Before the rest, which can be done while the store works.
    const reply = callSafely(call);
    const pending = new PendingCall(operation, sent.monoMs, sent.monoMs + timeoutMs, onError);
    this.#pending.add(pending);
    this.#alarm.arm(pending.dueMs, pending.sentMs);
    if (this.#pending.size === 1) this.#alarm.setAwaited(true);
    // A store of the application may return a foreign promise, which may call back from inside its own code, or twice.
    Promise.resolve(reply).then(
      (value) =>
        safely(() => {
          this.#settle(pending);
          onReply(value);
        }),
      (error: unknown) =>
        safely(() => {
          if (this.#settle(pending)) onError(asStoreError(operation, error));
        }),
    );
  }

  /** Stops the timer as soon as no call needs it. */
  close(): void {
    this.#isClosed = true;
    if (this.#pending.size === 0) this.#onIdle();
  }

  /** Returns false if its deadline had passed. */
  #settle(pending: PendingCall): boolean {
    const wasPending = this.#pending.delete(pending);
    if (this.#pending.size === 0) this.#onIdle();
    return wasPending;
  }

  #onIdle(): void {
    this.#alarm.setAwaited(false);
    if (!this.#isClosed) return;
    this.#alarm.disarm();
    this.#lastRound?.cancel();
  }

  /**
   * Waits one more round: after a blocked event loop timers run first, and the reply may have arrived already. Then a
   * microtask: fake timers that are advanced synchronously leave no room for a reply of a store in memory. They may be far
   * beyond `nowMs` then, and the replies to later calls arrive after the microtask.
   */
  #onDue(): void {
    const expire = (): void => {
      const nowMs = this.#clock.now().monoMs;
      asMicrotask(() => this.#expire(nowMs));
    };
    this.#lastRound = this.#clock.after(0, expire, true);
  }

  #expire(nowMs: number): void {
    this.#alarm.disarm();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const call of this.#pending) {
      if (call.dueMs > nowMs) {
        nextMs = Math.min(nextMs, call.dueMs);
        continue;
      }
      this.#pending.delete(call);
      const message = `The lock store did not reply to ${call.operation} within ${Math.round(nowMs - call.sentMs)} ms`;
      call.reject(new LockStoreError(message, { outcome: 'unknown' }));
    }
    if (this.#pending.size === 0) this.#onIdle();
    else if (nextMs < Number.POSITIVE_INFINITY) this.#alarm.arm(nextMs, nowMs);
  }
}

/** A store that throws has failed like one that rejects. */
function callSafely<T>(call: () => Promise<T>): Promise<T> {
  try {
    return call();
  } catch (error) {
    return Promise.reject(error);
  }
}

function asStoreError(operation: string, cause: unknown): LockStoreError {
  if (hasCode(cause, 'ERR_LOCK_STORE')) return cause;
  return new LockStoreError(`The lock store failed at ${operation}`, { cause, outcome: 'unknown' });
}
