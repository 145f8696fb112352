import { type TracingChannel, tracingChannel } from 'node:diagnostics_channel';
import type { LockEvent } from '../model/events.ts';
import type { Locks } from '../runtime/locks.ts';

/** Which API asked for a lock: `acquire` or `run`, a guard, a try, or a batch. */
export type AcquireCaller = 'code' | 'guard' | 'try' | 'batch';

/** How an acquire ended. Traces have all of these names, events those of failures. */
export type Outcome = 'granted' | Failure;

/** How an acquire failed. */
export type Failure = 'refused' | 'timeout' | 'aborted' | 'deadlock';

/** The message of the channel. The fields from `outcome` on are set before `asyncStart`. */
export interface AcquireMessage extends LockEvent {
  readonly locks: Locks;
  readonly caller: AcquireCaller;
  readonly waitMs: number;
  /**
   * Runs the store call. A subscriber of `start` may set it, to run the call in another async context: it must call
   * `call`, once and synchronously, through the function that it found here, if there was one.
   */
  runStoreCall?: (call: () => void) => void;
  outcome?: Outcome;
  /** The fencing token of a grant. */
  fence?: number;
  /** In whole milliseconds. */
  waitedMs?: number;
  /** Whether the acquire stood in the key's queue. */
  wasQueued?: boolean;
  error?: unknown;
}

/**
 * The tracing channel `reenlock:acquire` of `node:diagnostics_channel`. It traces each acquire that asks the store; a local
 * re-entry is not traced. The store call runs in the stores that are bound to `start`, and by `runStoreCall`, so that spans of
 * the Redis client become children of a subscriber's span. Without subscribers it costs nothing.
 */
export const acquireChannel: TracingChannel<AcquireMessage, AcquireMessage> = tracingChannel('reenlock:acquire');

/** An acquire that is traced. */
interface Traced<T> {
  /** Makes the store call. */
  begin(): void;
  readonly result: { readonly promise: Promise<T> };
}

/** Begins an acquire, and traces it until its result. */
export function traced<T>(message: AcquireMessage, acquire: Traced<T>): Promise<T> {
  return acquireChannel.tracePromise(async () => {
    const call = (): void => acquire.begin();
    if (message.runStoreCall === undefined) call();
    else message.runStoreCall(call);
    return acquire.result.promise;
  }, message);
}
