import type { NodeRedisClient, NodeRedisOptions } from './calls.ts';

/** A client of the store's own, beside one of the application. It never reconnects. */
export class OwnClient {
  readonly client: NodeRedisClient;
  #opening: Promise<unknown> = Promise.resolve();

  /** It has the options of `origin`, except for those that are named. */
  constructor(origin: NodeRedisClient, options: NodeRedisOptions) {
    this.client = origin.duplicate({
      ...options,
      pingInterval: undefined,
      // The client of a cluster may have it for reads from replicas.
      readonly: false,
      socket: { ...origin.options?.socket, reconnectStrategy: false },
    });
  }

  open(): Promise<unknown> {
    this.#opening = this.client.connect();
    return this.#opening;
  }

  /** If it is being opened, it is closed afterwards: node-redis would leave the socket open. */
  close(): void {
    const close = (): void => {
      try {
        this.client.destroy();
      } catch (error) {
        // If it has ended by itself, a node-redis 5 throws, and a 6 takes it from its list of clients.
        if (this.client.isOpen) throw error;
      }
    };
    this.#opening.then(close, close);
  }
}

/** The options of a client for subscriptions. Channels belong to no database. */
export const subscriberOptions: NodeRedisOptions = { database: 0, disableOfflineQueue: false };
