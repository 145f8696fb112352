import type { Redis } from 'ioredis';
import { type Clock, systemClock, type Timer } from '../../base/clock.ts';
import type { StoreListener, StoreMessage, SubscribeOptions, Unsubscribe } from '../../model/store.ts';
import {
  awaitNodes,
  connectToNode,
  isCluster,
  isMember,
  type RedisOrCluster,
  subscriberOptions,
} from './cluster/cluster.ts';
import { redactCredentials, storeError } from './errors.ts';
import { readMessage } from './replies.ts';

const pingEveryMs = 5_000;
const pingTimeoutMs = 2_000;
/** How long a subscribe or unsubscribe may take: without a server, the client library tries for ever. */
const replyTimeoutMs = 2_000;

/**
 * The messages of a Redis store, on one connection of its own. The connection is opened with the first subscription. It is
 * closed when the last subscription ends, or when a first one is not in force within two seconds. It reconnects for ever,
 * in a cluster to another node each time. It is pinged, so that a half-open connection is noticed.
 */
export class RedisChannel {
  readonly #client: RedisOrCluster;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #listeners = new Map<string, StoreListener>();
  /** The listeners that also want to hear of free keys, by the same names. They share one channel. */
  readonly #freedListeners = new Map<string, StoreListener>();
  readonly #freedChannel: string;
  #connection: Redis | undefined;
  #pingTimer: Timer | undefined;
  /** The server refused to subscribe again, for want of a right. Instead of a ping, it is asked again until it agrees. */
  #isRefused = false;

  constructor(client: RedisOrCluster, prefix: string, clock: Clock = systemClock) {
    this.#client = client;
    this.#prefix = prefix;
    this.#freedChannel = `${prefix}freed`;
    this.#clock = clock;
  }

  /** Whether there is no subscription. */
  get isIdle(): boolean {
    return this.#listeners.size === 0;
  }

  async subscribe(process: string, listener: StoreListener, options: SubscribeOptions = {}): Promise<Unsubscribe> {
    const channel = this.#prefix + process;
    this.#listeners.set(channel, listener);
    if (options.freed) this.#freedListeners.set(channel, listener);
    let isOver = false;
    let stopWaiting = (): void => {};
    const send = async (): Promise<void> => {
      if (isCluster(this.#client)) await awaitNodes(this.#client);
      // Nothing would close a connection that is opened now.
      if (isOver) return;
      this.#connection ??= this.#open();
      const connection = this.#connection;
      // An ioredis 5 would send the subscription before its own ready check, which is forbidden from then on.
      if (connection.status === 'connect') {
        await new Promise<void>((resolve) => {
          connection.once('ready', resolve);
          stopWaiting = () => connection.off('ready', resolve);
        });
      }
      if (isOver) return;
      await connection.subscribe(channel, ...(options.freed ? [this.#freedChannel] : []));
    };
    try {
      await this.#inTime(send());
    } catch (error) {
      isOver = true;
      // Without a server, the caller tries again and again on the same connection: no listener may stay on it.
      stopWaiting();
      // The caller gets no function to end it with.
      this.#unsubscribe(channel).catch(() => undefined);
      throw storeError('subscribe', error);
    }
    return () => this.#unsubscribe(channel);
  }

  async #unsubscribe(channel: string): Promise<void> {
    this.#listeners.delete(channel);
    const isLastFreed = this.#freedListeners.delete(channel) && this.#freedListeners.size === 0;
    const connection = this.#connection;
    if (connection === undefined) return;
    if (this.#listeners.size > 0) {
      const ended = connection.unsubscribe(channel, ...(isLastFreed ? [this.#freedChannel] : []));
      // The subscription ended with the connection. If the client is closed before it reconnects, the call never settles.
      if (connection.status === 'reconnecting') ended.catch(() => undefined);
      else {
        await this.#inTime(ended).catch((error: Error) => {
          // The end of the last subscription closed the connection meanwhile, which ends this one as well.
          if (this.#connection === connection) throw error;
        });
      }
      return;
    }
    this.#connection = undefined;
    this.#pingTimer?.cancel();
    connection.disconnect();
  }

  /** The timer is started with the call and cancelled by its reply. */
  #inTime(reply: Promise<unknown>): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(replyTimeoutMs, () => reject(new Error(`No reply within ${replyTimeoutMs} ms`)));
      reply.then(() => resolve(), reject).finally(() => timer.cancel());
    });
  }

  #open(): Redis {
    const client = this.#client;
    const retry = (attempt: number): number => {
      if (!isCluster(client)) {
        // The application may have changed its credentials. ioredis reads them at each connect.
        const { username, password } = client.options;
        Object.assign(connection.options, { username, password });
      }
      return Math.min(attempt * 50, 2_000);
    };
    const options = { ...subscriberOptions, retryStrategy: retry, sentinelRetryStrategy: retry };
    const connection: Redis = isCluster(client)
      ? connectToNode(client, options, () => this.#clock.jitter())
      : client.duplicate(options);
    connection.on('message', (channel: string, text: string) => {
      const message = readMessage(text);
      if (message === undefined) return;
      if (channel !== this.#freedChannel) this.#listeners.get(channel)?.(message);
      else for (const listener of this.#freedListeners.values()) listener(message);
    });
    connection.on('error', (error: Error) => this.#tellAll({ kind: 'fault', error: redactCredentials(error) }));
    connection.on('ready', () => {
      // It may have been closed already.
      if (this.#connection === connection) void this.#subscribeAgain(connection);
    });
    this.#startPinging(connection);
    return connection;
  }

  async #subscribeAgain(connection: Redis): Promise<void> {
    const freed = this.#freedListeners.size > 0 ? [this.#freedChannel] : [];
    try {
      await connection.subscribe(...this.#listeners.keys(), ...freed);
      this.#isRefused = false;
      this.#tellAll({ kind: 'resubscribed' });
    } catch (error) {
      this.#isRefused = true;
      this.#tellAll({ kind: 'fault', error: error as Error });
    }
  }

  #tellAll(message: StoreMessage): void {
    for (const listener of this.#listeners.values()) listener(message);
  }

  /** Continues whether or not a ping is ever answered: the next connection may be half-open, too. */
  #startPinging(connection: Redis): void {
    this.#pingTimer = this.#clock.after(pingEveryMs, () => {
      const continuePinging = (): void => {
        if (this.#connection !== connection || this.#pingTimer !== deadline) return;
        deadline.cancel();
        this.#startPinging(connection);
      };
      const deadline = this.#clock.after(pingTimeoutMs, () => {
        if (connection.status === 'ready' || connection.status === 'connect') connection.disconnect(true);
        continuePinging();
      });
      this.#pingTimer = deadline;
      if (isCluster(this.#client) && !isMember(this.#client, connection)) connection.disconnect(true);
      if (connection.status !== 'ready') return;
      const reply = this.#isRefused ? this.#subscribeAgain(connection) : connection.ping();
      reply.then(continuePinging, continuePinging);
    });
  }
}
