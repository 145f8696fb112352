import { EventEmitter } from 'node:events';
import { guarded } from '../../../../core/base/safely.ts';
import type { ConnectionEvents } from '../client-link.ts';

/** A source of events. */
export interface Emitter<E extends string> {
  on(event: E, listener: (event: Error) => void): unknown;
  off(event: E, listener: (event: Error) => void): unknown;
}

/** Forwards the events of several emitters. It listens to them only while it has listeners. */
export class RelayedEvents implements ConnectionEvents {
  readonly #begin: (relay: RelayedEvents) => void;
  readonly #events = new EventEmitter();
  readonly #undo: (() => void)[] = [];

  /** `begin` is called at the first listener, and starts the forwarding. */
  constructor(begin: (relay: RelayedEvents) => void) {
    this.#begin = begin;
  }

  get isListened(): boolean {
    return this.#events.eventNames().length > 0;
  }

  on(event: 'ready' | 'error', listener: (error: Error) => void): void {
    const isFirst = !this.isListened;
    this.#events.on(event, listener);
    if (isFirst) this.#begin(this);
  }

  off(event: 'ready' | 'error', listener: (error: Error) => void): void {
    this.#events.off(event, listener);
    if (!this.isListened) for (const undo of this.#undo.splice(0)) undo();
  }

  /** Emits `ready`. */
  emitReady(): void {
    this.#events.emit('ready');
  }

  /** Forwards an event, until there are no listeners. */
  pass<E extends string>(emitter: Emitter<E>, event: E, as: 'ready' | 'error'): void {
    this.watch(emitter, event, (error) => {
      // Without a listener, an error would be thrown.
      if (this.#events.listenerCount(as) > 0) this.#events.emit(as, error);
    });
  }

  /** Calls the listener for an event, until there are no listeners here. */
  watch<E extends string>(emitter: Emitter<E>, event: E, listener: (event: Error) => void): void {
    const own = guarded(listener);
    emitter.on(event, own);
    this.#undo.push(() => emitter.off(event, own));
  }
}
