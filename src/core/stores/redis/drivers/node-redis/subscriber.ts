import { retryMs } from '../connection-times.ts';
import type { RedisSubscriber, SubscriberListener } from '../driver.ts';
import type { NodeRedisClient } from './calls.ts';

/**
 * A connection of node-redis for subscriptions. The client subscribes again by itself before it says that it is ready. Its
 * server is the client's: it can't be stranded.
 */
export class NodeRedisSubscriber implements RedisSubscriber {
  readonly isStranded = false;
  readonly #origin: NodeRedisClient;
  readonly #listener: SubscriberListener;
  readonly #onMessage: (text: string, channel: string) => void;
  #connection: NodeRedisClient;

  constructor(origin: NodeRedisClient, listener: SubscriberListener) {
    this.#origin = origin;
    this.#listener = listener;
    this.#onMessage = (text, channel) => listener.onMessage(channel, text);
    this.#connection = this.#open();
  }

  get isReady(): boolean {
    return this.#connection.isReady;
  }

  subscribe(channels: readonly string[]): Promise<unknown> {
    return this.#connection.subscribe([...channels], this.#onMessage);
  }

  unsubscribe(channels: readonly string[]): Promise<unknown> {
    const isReady = this.isReady;
    const ended = this.#connection.unsubscribe([...channels], this.#onMessage);
    if (isReady) return ended;
    // It is sent after the client has subscribed again, if that ever happens.
    ended.catch(() => undefined);
    return Promise.resolve();
  }

  ping(): Promise<unknown> {
    return this.#connection.sendCommand(['PING'], { typeMapping: {} });
  }

  /** The client has no way to connect again but another client. Everything is subscribed on it when it is ready. */
  reconnect(): void {
    this.close();
    this.#connection = this.#open();
  }

  close(): void {
    if (this.#connection.isOpen) this.#connection.destroy();
  }

  #open(): NodeRedisClient {
    const { socket } = this.#origin.options ?? {};
    const connection = this.#origin.duplicate({
      // Channels belong to no database.
      database: 0,
      disableOfflineQueue: false,
      pingInterval: undefined,
      socket: { ...socket, reconnectStrategy: retryMs },
    });
    connection.on('error', (error) => this.#listener.onFault(error));
    connection.on('ready', () => {
      if (this.#connection === connection) this.#listener.onReady();
    });
    // What it rejects with, it also tells by event.
    connection.connect().catch(() => undefined);
    return connection;
  }
}
