import type { NodeRedisClient, NodeRedisOptions } from './calls.ts';

/** The store's own client, in addition to one of the application. It never reconnects. */
export class OwnClient {
  readonly client: NodeRedisClient;
  #opening: Promise<unknown> = Promise.resolve();

  /** It has the options of `origin`, except for the given ones and those that are of no use here. */
  constructor(origin: NodeRedisClient, options: NodeRedisOptions) {
    const socket = { ...origin.options?.socket, socketTimeout: undefined, reconnectStrategy: false } as const;
    this.client = origin.duplicate({ ...unlikeApplication, ...options, socket });
  }

  open(): Promise<unknown> {
    this.#opening = this.client.connect();
    return this.#opening;
  }

  /** If it is being opened, it is closed after that: node-redis would leave the socket open. */
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

/**
 * Options that the store's own client does not inherit. `socketTimeout` is one: node-redis ends a connection that is silent for
 * that long, as one for subscriptions is. The store pings that, and limits the time of its commands.
 */
const unlikeApplication: NodeRedisOptions = {
  pingInterval: undefined,
  // The client of a cluster may have it for reads from replicas.
  readonly: false,
  // Several commands are sent at once when it connects: a transaction would not fit.
  commandsQueueMaxLength: undefined,
  // A limit and a signal that end the application's commands, and types that it maps replies to.
  commandOptions: undefined,
  // The application's cache would be cleared when this connection ends.
  clientSideCache: undefined,
  emitInvalidate: undefined,
  // It would move to another server by itself, in the middle of a transaction.
  maintNotifications: 'disabled',
};

/** The options of a client for subscriptions. Channels belong to no database. */
export const subscriberOptions: NodeRedisOptions = { database: 0, disableOfflineQueue: false };
