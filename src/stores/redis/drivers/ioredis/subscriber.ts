import type { Redis, RedisOptions } from 'ioredis';
import { listenTo } from '../../../../core/base/safely.ts';
import type { RedisSubscriber, SubscriberListener } from '../driver.ts';

/** The options of a connection for subscriptions that replace those of the client. */
export const subscriberOptions: RedisOptions = {
  // The scripts name channels in full: they must not get a key prefix.
  keyPrefix: '',
  maxRetriesPerRequest: null,
  // If the connection closes meanwhile, ioredis would leave the rejection unhandled, which ends the process.
  autoResubscribe: false,
  // For the same reason no other database is selected. Channels belong to none.
  db: 0,
  lazyConnect: false,
  enableOfflineQueue: true,
  // A ping that timed out would count as one with a reply.
  commandTimeout: undefined,
  socketTimeout: undefined,
  // The channel retries a refused subscription, without a new connection for each time.
  reconnectOnError: null,
};

/** A connection of ioredis for subscriptions. `isStranded` returns whether its server has left the cluster. */
export class IoredisSubscriber implements RedisSubscriber {
  readonly #connection: Redis;
  readonly #isStranded: (connection: Redis) => boolean;

  constructor(
    connection: Redis,
    listener: SubscriberListener,
    isStranded: (connection: Redis) => boolean = () => false,
  ) {
    this.#connection = connection;
    this.#isStranded = isStranded;
    listenTo(connection, 'message', (channel: string, text: string) => listener.onMessage(channel, text));
    listenTo(connection, 'error', (error: Error) => listener.onFault(error));
    listenTo(connection, 'ready', () => listener.onReady());
  }

  /** Not before: an ioredis 5 would send a subscription before its own ready check, which is forbidden from then on. */
  get isReady(): boolean {
    return this.#connection.status === 'ready';
  }

  get isStranded(): boolean {
    return this.#isStranded(this.#connection);
  }

  subscribe(channels: readonly string[]): Promise<unknown> {
    return this.#connection.subscribe(...channels);
  }

  unsubscribe(channels: readonly string[]): Promise<unknown> {
    // The subscription ended with the connection. If the client is closed before it reconnects, the call never settles.
    return this.isReady ? this.#connection.unsubscribe(...channels) : Promise.resolve();
  }

  ping(): Promise<unknown> {
    return this.#connection.ping();
  }

  reconnect(): void {
    const { status } = this.#connection;
    if (status === 'ready' || status === 'connect') this.#connection.disconnect(true);
  }

  close(): void {
    this.#connection.disconnect();
  }
}
