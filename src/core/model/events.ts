import { EventEmitter } from 'node:events';
import { type FaultListener, faultCode } from '../base/safely.ts';
import type { LockLostError } from './errors/failures.ts';
import type { LockHolder } from './errors/lock-holder.ts';
import type { DeadlockWait } from './errors/refusals.ts';
import { branchOf } from './owner.ts';
import type { SignatureRefusal } from './signature.ts';
import type { HoldMode } from './types.ts';
import { callable, checkValue, describe, oneOf } from './validate.ts';

/** The common part of events about a lock. It is for listeners and logs, never for clients. */
export interface LockEvent {
  readonly key: string;
  readonly category: string | undefined;
  readonly mode: HoldMode;
  /** The trace that acquires or holds. */
  readonly traceId: string;
  /** The path of the branch below the trace, as `1/9f3k`; empty for the root. */
  readonly branch: string;
  readonly holdId: string;
}

/** The common part of a grant and a waiter that their events need. */
export interface EventSource {
  readonly key: string;
  readonly category: string | undefined;
  readonly traceId: string;
  readonly request: { readonly mode: HoldMode; readonly owner: string; readonly holdId: string };
  /** The original request, if the store has another one by now: all events about it have the same hold id. */
  readonly origin?: EventSource['request'];
}

/** The fields of every event about a grant or a waiter. */
export function eventOf({ key, category, traceId, request, origin = request }: EventSource): LockEvent {
  return { key, category, mode: origin.mode, traceId, branch: branchOf(origin.owner), holdId: origin.holdId };
}

/**
 * Why a trace header was refused: `malformed`, the id, the branch or the signature is not well formed; `untrusted`, `trust` does not
 * accept the sender. The others are for signed headers: `unsigned`, there is no signature; `unknown-secret`, it is by a secret
 * that `trust` does not list; `mismatch`, it is for another audience, or the id or branch was changed; `expired`, it is older than 30 s
 * on this clock; `future`, the sender's clock is more than 30 s ahead.
 */
export type HeaderRefusalReason = 'untrusted' | SignatureRefusal;

/** Why an acquire was refused: the key is not free, a limit, a `Locks` that is closed, the store, or a lost hold. */
export type RefusalReason = 'busy' | 'limit' | 'closed' | 'store' | 'lost';

/**
 * The events of a `Locks`, with the argument of their listeners. Durations are whole milliseconds.
 *
 * Every acquire that is no local re-entry ends in exactly one of `granted`, `refused`, `timeout`, `aborted` and `deadlock`.
 * Every `granted` and every `resumed` is followed by exactly one of `released`, `lost` and `detached`.
 */
export interface LockEvents {
  /** The store granted a hold; not sent for local re-entry. */
  granted: LockEvent & { readonly fence: number; readonly waitedMs: number };
  /**
   * The store granted a hold while ancestors or its own branch had others: a nested call of another service or job,
   * or a reader that became the writer. `isOverlap`: the other hold has the same owner, but belongs to another request or job
   * under the same bare trace id: neither excludes the other, although they may work at the same time. Two readers may, and
   * are no overlap.
   */
  entered: LockEvent & { readonly fence: number; readonly otherHolds: number; readonly isOverlap: boolean };
  /** An acquire waits in the key's queue. */
  waiting: LockEvent;
  /** The watchdog, or `extend`, made a lease longer. */
  renewed: LockEvent & { readonly remainingMs: number };
  /**
   * A hold has ended by the scope's last release of the key. If the store does not reply, it comes when the release is no
   * longer repeated: the lease has expired then.
   */
  released: LockEvent & { readonly heldMs: number };
  /** A hold left its scope: its token may resume it until its lease of `leaseMs` expires. `fence` is that of the hold that ended. */
  detached: LockEvent & { readonly fence: number; readonly heldMs: number; readonly leaseMs: number };
  /** A detached hold became a hold of this scope, with a new hold id and fence. */
  resumed: LockEvent & { readonly fence: number };
  /** A hold was lost: see the error. Sometimes its release finds out. */
  lost: LockEvent & { readonly heldMs: number; readonly error: LockLostError };
  /** A force release of this process took a key from its holders, whose processes get `lost`. */
  forced: {
    readonly key: string;
    readonly category: string | undefined;
    readonly fence: number;
    readonly by: string | undefined;
    readonly reason: string | undefined;
  };
  /**
   * An acquire was refused: `busy`, the key is not free and its `waitMs` is 0, or it was a try; `limit`, a
   * `LockLimitError`; `closed`, the `Locks` is closing; `store`, the store failed, or can't keep the key; `lost`, it would have re-entered a lost
   * hold.
   */
  refused: LockEvent & { readonly reason: RefusalReason; readonly waitedMs: number };
  /** An acquire gave up after `waitMs`. `holder` has the key, if the store said so: see `LockTimeoutError`. */
  timeout: LockEvent & { readonly waitedMs: number; readonly holder: LockHolder | undefined };
  /**
   * An acquire ended because its signal or its job's was aborted, its client disconnected, or its scope ended. If that happened
   * before the store was asked, no other event has its `holdId`.
   */
  aborted: LockEvent & { readonly waitedMs: number };
  /** An acquire ended because it waited in a deadlock: see `DeadlockError`. */
  deadlock: LockEvent & { readonly waitedMs: number; readonly cycle: readonly DeadlockWait[] };
  /**
   * The store failed: once for each acquire, release or other call of the application that fails with a `LockStoreError`.
   * Also for what fails in the background, unless an outage is the reason: each renewal, the first of several polls of a
   * key, an interrupted stream of messages. That is tried again.
   */
  storeError: {
    readonly operation: string;
    readonly key: string | undefined;
    readonly category: string | undefined;
    readonly error: Error;
  };
  /** The store can't be reached, and calls fail at once from now on: an outage has begun. `error` is the client's own. */
  storeDown: { readonly error: Error };
  /** The store can be reached again. `failedCalls` have failed in the outage, those in the background included. */
  storeUp: { readonly downMs: number; readonly failedCalls: number };
  /** The store failed, and a guard with `failOpen` let the request in without its locks. */
  failedOpen: { readonly keys: readonly string[]; readonly traceId: string; readonly error: Error };
  /** A trace header was not adopted, and the request got a new trace id. The client sees no reason. */
  headerRefused: { readonly reason: HeaderRefusalReason };
  /**
   * A promise that was given to `waitUntil` rejected, the `authorize` of a board failed for a page that is open, or a callback
   * of this package failed; `cause` has the reason. Other warnings are process warnings.
   */
  warning: { readonly code: string; readonly message: string; readonly cause?: unknown };
}

const all: Readonly<Record<keyof LockEvents, true>> = {
  granted: true,
  entered: true,
  waiting: true,
  renewed: true,
  released: true,
  detached: true,
  resumed: true,
  lost: true,
  forced: true,
  refused: true,
  timeout: true,
  aborted: true,
  deadlock: true,
  storeError: true,
  storeDown: true,
  storeUp: true,
  failedOpen: true,
  headerRefused: true,
  warning: true,
};

/** The names of all events. */
export const lockEventNames: readonly (keyof LockEvents)[] = Object.keys(all) as (keyof LockEvents)[];

const name = oneOf(...lockEventNames);

/** A listener of one event. */
export type LockListener<E extends keyof LockEvents> = (event: LockEvents[E]) => void;

/** The events of one `Locks`. A listener that throws never breaks a request: its error becomes a process warning. */
export class Events implements FaultListener {
  readonly #emitter = new EventEmitter();

  /** Adds a listener and returns the function that removes it. Throws `LockConfigError` for an unknown event. */
  on<E extends keyof LockEvents>(event: E, listener: LockListener<E>): () => void {
    checkValue('the event', event, name);
    checkValue('the listener', listener, callable);
    // The same function may be added twice.
    const own: LockListener<E> = (payload) => listener(payload);
    this.#emitter.on(event, own);
    return () => {
      this.#emitter.off(event, own);
    };
  }

  /** Whether anything listens. Check it first if the payload costs something on a hot path. */
  has(event: keyof LockEvents): boolean {
    return this.#emitter.listenerCount(event) > 0;
  }

  onFault(cause: unknown, message: string): void {
    this.emit('warning', { code: faultCode, message, cause });
  }

  emit<E extends keyof LockEvents>(event: E, payload: LockEvents[E]): void {
    if (!this.has(event)) return;
    for (const listener of this.#emitter.listeners(event)) {
      try {
        const returned: unknown = listener(payload);
        if (returned !== undefined) Promise.resolve(returned).catch(reportListener);
      } catch (error) {
        reportListener(error);
      }
    }
  }
}

function reportListener(error: unknown): void {
  // The thrown value may be anything, and some values can't be made a string.
  const { message } = Object(error) as { message?: unknown };
  const words = typeof message === 'string' ? message : describe(error);
  process.emitWarning(`A listener of lock events threw: ${words}`, { type: 'ReenlockWarning', code: 'LOCK_LISTENER' });
}
