import type { Link } from '../../../core/base/link.ts';
import { guarded, safely } from '../../../core/base/safely.ts';
import { hideCommand } from './hide-command.ts';

/** The common part of the clients of all libraries: they emit events of their connection. */
export interface ConnectionEvents {
  on(event: 'ready' | 'error', listener: (error: Error) => void): unknown;
  off(event: 'ready' | 'error', listener: (error: Error) => void): unknown;
}

/** The connection of a client. It listens to the client only while somebody waits for the connection. */
export class ClientLink implements Link {
  #error: Error | undefined;
  readonly #client: ConnectionEvents;
  readonly #state: () => 'up' | 'down' | 'ended';
  readonly #connect: () => void;
  readonly #listeners = new Set<() => void>();

  /** `connect` is called when somebody begins to wait, for a client that connects on demand. */
  constructor(client: ConnectionEvents, state: () => 'up' | 'down' | 'ended', connect: () => void = () => undefined) {
    this.#client = client;
    this.#state = state;
    this.#connect = connect;
  }

  get error(): Error | undefined {
    if (this.#error !== undefined || !this.isEnded) return this.#error;
    return new Error('The client is closed, or was never opened: call `await client.connect()` before the first lock');
  }

  get isUp(): boolean {
    return this.#state() === 'up';
  }

  get isEnded(): boolean {
    return this.#state() === 'ended';
  }

  onceUp(listener: () => void): () => void {
    if (this.#listeners.size === 0) {
      this.#error = undefined;
      this.#client.on('ready', this.#onReady);
      this.#client.on('error', this.#onError);
    }
    this.#listeners.add(listener);
    this.#connect();
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#unlisten();
    };
  }

  readonly #onReady = guarded(() => {
    if (!this.isUp) return;
    this.#unlisten();
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) safely(listener);
  });

  readonly #onError = guarded((error: Error) => {
    this.#error = hideCommand(error);
  });

  #unlisten(): void {
    this.#client.off('ready', this.#onReady);
    this.#client.off('error', this.#onError);
  }
}
