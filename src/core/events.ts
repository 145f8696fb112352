import { EventEmitter } from 'node:events';
import type { LockEvents } from './types.ts';
import { callable, checkValue, describe, oneOf } from './validate.ts';

const all: Readonly<Record<keyof LockEvents, true>> = {
  granted: true,
  entered: true,
  waiting: true,
  renewed: true,
  released: true,
  lost: true,
  timeout: true,
  aborted: true,
  deadlock: true,
  storeError: true,
  passed: true,
  headerRefused: true,
  warning: true,
};

const name = oneOf(...Object.keys(all));

/** A listener of one event. */
export type LockListener<E extends keyof LockEvents> = (event: LockEvents[E]) => void;

/** The events of one `Locks`. A listener that throws never breaks a request: its error becomes a process warning. */
export class Events {
  readonly #emitter = new EventEmitter();

  /** Adds a listener and returns the function that removes it. Throws `LockConfigError` for an event that there is not. */
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

  /** Asked first where building the event costs something on a hot path. */
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
  // What was thrown may be anything, and not all of it can be made a string.
  const { message } = Object(error) as { message?: unknown };
  const words = typeof message === 'string' ? message : describe(error);
  process.emitWarning(`A listener of lock events threw: ${words}`, { type: 'ReenlockWarning', code: 'LOCK_LISTENER' });
}
