import type { Cluster, Redis } from 'ioredis';
import type { Link } from '../../../base/link.ts';

/** The connection of an ioredis client. It listens to the client only while somebody waits for the connection. */
export class IoredisLink implements Link {
  error: Error | undefined;
  readonly #client: Redis | Cluster;
  readonly #listeners = new Set<() => void>();

  constructor(client: Redis | Cluster) {
    this.#client = client;
  }

  get isUp(): boolean {
    return this.#client.status === 'ready';
  }

  get isEnded(): boolean {
    return this.#client.status === 'end';
  }

  onceUp(listener: () => void): () => void {
    if (this.#listeners.size === 0) {
      this.error = undefined;
      this.#client.on('ready', this.#onReady);
      this.#client.on('error', this.#onError);
    }
    this.#listeners.add(listener);
    // A lazy client connects on demand. What it rejects with, it also tells by event.
    if (this.#client.status === 'wait') this.#client.connect().catch(() => undefined);
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#unlisten();
    };
  }

  readonly #onReady = (): void => {
    this.#unlisten();
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) listener();
  };

  readonly #onError = (error: Error): void => {
    this.error = error;
  };

  #unlisten(): void {
    this.#client.off('ready', this.#onReady);
    this.#client.off('error', this.#onError);
  }
}
