import { EventEmitter } from 'node:events';
import type { DeadlockWait, LockLostError } from './errors.ts';
import { callable, checkValue, describe, oneOf } from './validate.ts';

/** What every event about a lock carries. It is for listeners and logs, never for clients. */
export interface LockEvent {
  readonly key: string;
  readonly owner: string;
  readonly holdId: string;
}

/** The events of a `Locks`, and what their listeners are called with. */
export interface LockEvents {
  /** The store granted a hold; not sent for local re-entry. */
  granted: LockEvent & { readonly fence: number; readonly waitedMs: number };
  /**
   * The store granted a hold beside other holds of the same owner: another request or job of its trace, or a reader that
   * became the writer. Parallel branches of one owner do not exclude each other; this event shows them.
   */
  entered: LockEvent & { readonly fence: number; readonly otherHolds: number };
  /** An acquire waits in the key's queue. */
  waiting: LockEvent;
  /** The watchdog, or `extend`, made a lease longer. */
  renewed: LockEvent & { readonly remainingMs: number };
  /** The store took the scope's last release of a key. */
  released: LockEvent & { readonly heldMs: number };
  /** A hold was lost: see the error. Emitted once a hold; sometimes its release finds out. */
  lost: LockEvent & { readonly error: LockLostError };
  /** A force release of this process took a key from its holders, whose processes get `lost`. */
  forced: {
    readonly key: string;
    readonly category: string | undefined;
    readonly fence: number;
    readonly by: string | undefined;
    readonly reason: string | undefined;
  };
  /** An acquire was refused without a wait: its `waitMs` is 0, or it was a try, and the key is not free. */
  refused: LockEvent & { readonly reason: 'busy' };
  /** An acquire gave up after `waitMs`. */
  timeout: LockEvent & { readonly waitedMs: number };
  /**
   * An acquire ended because its signal or its job's was aborted, its client left, or its scope ended. If that happened
   * before the store was asked, no other event has its `holdId`.
   */
  aborted: LockEvent & { readonly waitedMs: number };
  /** An acquire ended because it waited in a deadlock: see `DeadlockError`. */
  deadlock: LockEvent & { readonly waitedMs: number; readonly cycle: readonly DeadlockWait[] };
  /** A store call failed; renewals and releases are tried again. */
  storeError: { readonly operation: string; readonly key?: string; readonly error: Error };
  /** The store failed, and a guard with `failOpen` let the request in without its locks. */
  failedOpen: { readonly keys: readonly string[]; readonly traceId: string; readonly error: Error };
  /** A trace header was refused: it is malformed, or comes from a peer that is not trusted. */
  headerRefused: { readonly reason: 'malformed' | 'untrusted' };
  /** A promise that was given to `waitUntil` rejected, with the reason in `cause`. Other warnings are process warnings. */
  warning: { readonly code: string; readonly message: string; readonly cause?: unknown };
}

const all: Readonly<Record<keyof LockEvents, true>> = {
  granted: true,
  entered: true,
  waiting: true,
  renewed: true,
  released: true,
  lost: true,
  forced: true,
  refused: true,
  timeout: true,
  aborted: true,
  deadlock: true,
  storeError: true,
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
export class Events {
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
