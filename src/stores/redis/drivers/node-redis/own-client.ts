import type { NodeRedisClient, NodeRedisOptions } from './calls.ts';

/** A client of the store's own, beside one of the application. It never reconnects. */
export class OwnClient {
  readonly client: NodeRedisClient;
  #opening: Promise<unknown> = Promise.resolve();

  /** It has the options of `origin`, except for those that are named and those that are of no use here. */
  constructor(origin: NodeRedisClient, options: NodeRedisOptions) {
    const socket = { ...origin.options?.socket, socketTimeout: undefined, reconnectStrategy: false } as const;
    this.client = origin.duplicate({ ...unlikeApplication, ...options, socket });
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

/**
 * Options that a client of the store's own does not take over. `socketTimeout`, too, is not: node-redis ends a connection that
 * is silent for so long, as one for subscriptions is. The store pings that, and limits the time of its commands.
 */
const unlikeApplication: NodeRedisOptions = {
  pingInterval: undefined,
  // The client of a cluster may have it for reads from replicas.
  readonly: false,
  // The server is told several things at once: a transaction would not fit.
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
