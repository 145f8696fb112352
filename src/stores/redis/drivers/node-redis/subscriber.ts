import { systemClock, type Timer } from '../../../../core/base/clock.ts';
import { guarded, listenTo } from '../../../../core/base/safely.ts';
import { retryMs } from '../connection-times.ts';
import type { RedisSubscriber, SubscriberListener } from '../driver.ts';
import { type NodeRedisClient, replyOptions } from './calls.ts';
import { OwnClient, subscriberOptions } from './own-client.ts';

/** The source of a subscriber's connections. */
export interface SubscriberOrigins {
  /** The client to duplicate now, if possible another one than the last; undefined if there is none at the moment. */
  next(last: NodeRedisClient | undefined): NodeRedisClient | undefined;
  /** Whether a connection that was duplicated from this one still gets the messages. */
  isCurrent(origin: NodeRedisClient): boolean;
}

/**
 * Connections of node-redis for subscriptions, one after another. A client of node-redis connects again to the same server
 * only, and has no way to do so on demand: each connection is therefore a new client, which never reconnects.
 */
export class NodeRedisSubscriber implements RedisSubscriber {
  readonly #origins: SubscriberOrigins;
  readonly #listener: SubscriberListener;
  readonly #onMessage: (text: string, channel: string) => void;
  #origin: NodeRedisClient | undefined;
  /** Undefined between two connections. */
  #connection: OwnClient | undefined;
  /** How many connections in succession could not be opened. */
  #failures = 0;
  /** Runs between two connections; cancelled by `close`. */
  #timer: Timer | undefined;

  constructor(origins: SubscriberOrigins, listener: SubscriberListener) {
    this.#origins = origins;
    this.#listener = listener;
    this.#onMessage = guarded((text: string, channel: string) => listener.onMessage(channel, text));
    this.#open();
  }

  get isReady(): boolean {
    return this.#connection?.client.isReady === true;
  }

  get isStranded(): boolean {
    return this.#origin !== undefined && !this.#origins.isCurrent(this.#origin);
  }

  async subscribe(channels: readonly string[]): Promise<unknown> {
    return this.#opened.subscribe([...channels], this.#onMessage);
  }

  async unsubscribe(channels: readonly string[]): Promise<unknown> {
    return this.isReady ? this.#opened.unsubscribe([...channels], this.#onMessage) : undefined;
  }

  async ping(): Promise<unknown> {
    return this.#opened.sendCommand(['PING'], replyOptions);
  }

  reconnect(): void {
    this.close();
    this.#open();
  }

  close(): void {
    this.#timer?.cancel();
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.close();
  }

  get #opened(): NodeRedisClient {
    if (this.#connection === undefined) throw new Error('The connection for subscriptions is lost');
    return this.#connection.client;
  }

  #open(): void {
    const origin = this.#origins.next(this.#origin);
    if (origin === undefined) {
      this.#openLater();
      return;
    }
    this.#origin = origin;
    const connection = new OwnClient(origin, subscriberOptions);
    this.#connection = connection;
    listenTo(connection.client, 'error', (error: Error) => {
      this.#listener.onFault(error);
      if (!connection.client.isOpen) this.#lost(connection);
    });
    listenTo(connection.client, 'ready', () => {
      if (this.#connection !== connection) return;
      this.#failures = 0;
      this.#listener.onReady();
    });
    // It also emits this error.
    connection.open().catch(() => undefined);
  }

  #lost(connection: OwnClient): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    connection.close();
    this.#openLater();
  }

  #openLater(): void {
    this.#failures += 1;
    this.#timer = systemClock.after(retryMs(this.#failures), () => this.#open());
  }
}
