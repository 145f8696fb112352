import { type Clock, type Instant, outsideRequests, type Timer } from '../base/clock.ts';
import { isPromise, type MaybePromise } from '../base/maybe-promise.ts';
import { type Listed, SwapList } from '../base/swap-list.ts';
import { hasCode } from '../model/error-code.ts';
import { LockStoreError } from '../model/errors.ts';
import type { Events } from '../model/events.ts';

class PendingCall implements Listed {
  place = -1;
  readonly operation: string;
  readonly ms: number;
  readonly dueMs: number;
  readonly reject: (error: LockStoreError) => void;

  constructor(operation: string, ms: number, dueMs: number, reject: (error: LockStoreError) => void) {
    this.operation = operation;
    this.ms = ms;
    this.dueMs = dueMs;
    this.reject = reject;
  }
}

/**
 * Makes store calls, each with a deadline of its own; the client library is never trusted to settle. One timer for all of
 * them: started with a call, armed anew while any is pending, cleared after `close` once none is, unref'd.
 */
export class StoreCalls {
  readonly #clock: Clock;
  readonly #pending = new SwapList<PendingCall>();
  #timer: Timer | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Makes a call. `onError` is called with a `LockStoreError` when it failed or has not answered in `ms`; it may still have
   * its effect then, and whoever made it must undo it. `onReply` is called with the reply, however late it comes; from
   * inside this call, where the store answers at once.
   */
  start<T>(
    operation: string,
    sent: Instant,
    ms: number,
    call: () => MaybePromise<T>,
    onReply: (reply: T) => void,
    onError: (error: LockStoreError) => void,
  ): void {
    // First: while the store is at work, there is time for the rest.
    const answered = started(call);
    if (!isPromise(answered)) {
      onReply(answered);
      return;
    }
    const pending = new PendingCall(operation, ms, sent.monoMs + ms, onError);
    this.#pending.add(pending);
    this.#arm(pending.dueMs);
    // A foreign promise may call back from inside its own code, twice, or throw.
    Promise.resolve(answered).then(
      (reply) => {
        this.#settled(pending);
        onReply(reply);
      },
      (error: unknown) => {
        if (this.#settled(pending)) onError(asStoreError(operation, error));
      },
    );
  }

  /** As `start`, with a promise. */
  run<T>(operation: string, sent: Instant, ms: number, call: () => MaybePromise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.start(operation, sent, ms, call, resolve, reject);
    });
  }

  /** Stops the timer as soon as no call needs it for its deadline. */
  close(): void {
    this.#isClosed = true;
    this.#rest();
  }

  /** Answers whether its deadline had not passed. */
  #settled(pending: PendingCall): boolean {
    const wasPending = this.#pending.delete(pending);
    if (this.#isClosed) this.#rest();
    return wasPending;
  }

  #rest(): void {
    if (this.#pending.size > 0) return;
    this.#timer?.cancel();
    this.#timerDueMs = Number.POSITIVE_INFINITY;
  }

  #arm(dueMs: number): void {
    if (dueMs >= this.#timerDueMs) return;
    this.#timer?.cancel();
    this.#timerDueMs = dueMs;
    const ms = Math.ceil(Math.max(0, dueMs - this.#clock.now().monoMs));
    // One turn more than the deadline: after a blocked event loop, timers come first, and the answer may be there.
    const due = (): void => {
      this.#timer = this.#clock.after(0, () => this.#expire());
    };
    this.#timer = outsideRequests(() => this.#clock.after(ms, due));
  }

  #expire(): void {
    this.#timerDueMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.now().monoMs;
    let nextMs = Number.POSITIVE_INFINITY;
    for (const call of this.#pending) {
      if (call.dueMs > nowMs) {
        nextMs = Math.min(nextMs, call.dueMs);
        continue;
      }
      this.#pending.delete(call);
      const message = `The lock store did not answer to ${call.operation} within ${Math.round(call.ms)} ms`;
      call.reject(new LockStoreError(message, { outcome: 'unknown' }));
    }
    if (nextMs < Number.POSITIVE_INFINITY) this.#arm(nextMs);
  }
}

/** A store that throws instead of rejecting has failed the same. */
function started<T>(call: () => MaybePromise<T>): MaybePromise<T> {
  try {
    return call();
  } catch (error) {
    return Promise.reject(error);
  }
}

/**
 * Tells of a failed call by its event, and answers what its caller is told: the same failure with its key, since a store
 * knows a lock by its name alone.
 */
export function reported(events: Events, operation: string, key: string, failure: LockStoreError): LockStoreError {
  const { message, outcome } = failure;
  const details = 'cause' in failure ? { key, outcome, cause: failure.cause } : { key, outcome };
  const error = new LockStoreError(message, details);
  events.emit('storeError', { operation, key, error });
  return error;
}

function asStoreError(operation: string, cause: unknown): LockStoreError {
  if (hasCode(cause, 'ERR_LOCK_STORE')) return cause;
  return new LockStoreError(`The lock store failed at ${operation}`, { cause, outcome: 'unknown' });
}
