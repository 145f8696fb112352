import type { Redis } from 'ioredis';
import { type Clock, systemClock, type Timer } from '../../base/clock.ts';
import type { StoreListener, StoreMessage, SubscribeOptions, Unsubscribe } from '../../model/store.ts';
import { awaitNodes, connectToNode, isCluster, isMember, type RedisOrCluster } from './cluster/cluster.ts';
import { storeError, withoutLogin } from './errors.ts';
import { readMessage } from './replies.ts';
import { subscriberOptions } from './subscriber.ts';

const pingEveryMs = 5_000;
const pingDeadlineMs = 2_000;
/** How long a subscription, or its end, has to be in force: the client library tries for ever where no server is. */
const answerMs = 2_000;

/**
 * The messages of a Redis store, on one connection of its own: it is opened with the first subscription, and closed with the
 * end of the last one, or with its failure to be in force within two seconds. Meanwhile it reconnects for ever, in a cluster
 * to another node each time, and is pinged, so that a half-open connection is noticed.
 */
export class RedisChannel {
  readonly #client: RedisOrCluster;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #listeners = new Map<string, StoreListener>();
  /** By the same names: whoever is to be told of free keys. They share one channel. */
  readonly #freedListeners = new Map<string, StoreListener>();
  readonly #freedChannel: string;
  #connection: Redis | undefined;
  #pingTimer: Timer | undefined;
  /** Whether the server would not let it subscribe again, for want of a right: it is asked in place of a ping, until it does. */
  #isRefused = false;

  constructor(client: RedisOrCluster, prefix: string, clock: Clock = systemClock) {
    this.#client = client;
    this.#prefix = prefix;
    this.#freedChannel = `${prefix}freed`;
    this.#clock = clock;
  }

  /** Whether nobody is subscribed. */
  get isIdle(): boolean {
    return this.#listeners.size === 0;
  }

  async subscribe(process: string, listener: StoreListener, options: SubscribeOptions = {}): Promise<Unsubscribe> {
    const channel = this.#prefix + process;
    this.#listeners.set(channel, listener);
    if (options.freed) this.#freedListeners.set(channel, listener);
    let isOver = false;
    let unsubscribe = (): void => {};
    const ask = async (): Promise<void> => {
      if (isCluster(this.#client)) await awaitNodes(this.#client);
      // A connection opened now would be closed by nobody.
      if (isOver) return;
      this.#connection ??= this.#open();
      const connection = this.#connection;
      // An ioredis 5 would send it, and then its own question whether the server is ready, which is forbidden by then.
      if (connection.status === 'connect') {
        await new Promise<void>((resolve) => {
          connection.once('ready', resolve);
          unsubscribe = () => connection.off('ready', resolve);
        });
      }
      if (isOver) return;
      await connection.subscribe(channel, ...(options.freed ? [this.#freedChannel] : []));
    };
    try {
      await this.#inTime(ask());
    } catch (error) {
      isOver = true;
      // While the server does not answer, this is tried again and again on the one connection.
      unsubscribe();
      // Nobody else can end what never began.
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
      // What was in force went with the connection, and a client that is closed before it has another never answers.
      if (connection.status === 'reconnecting') ended.catch(() => undefined);
      else {
        await this.#inTime(ended).catch((error: Error) => {
          // Closed meanwhile by the last, which is an end as well.
          if (this.#connection === connection) throw error;
        });
      }
      return;
    }
    this.#connection = undefined;
    this.#pingTimer?.cancel();
    connection.disconnect();
  }

  /** The timer is started with the call, and cleared by its answer. */
  #inTime(answer: Promise<unknown>): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = this.#clock.after(answerMs, () => reject(new Error(`No answer within ${answerMs} ms`)));
      answer.then(() => resolve(), reject).finally(() => timer.cancel());
    });
  }

  #open(): Redis {
    const client = this.#client;
    const retry = (attempt: number): number => {
      if (!isCluster(client)) {
        // The application may have changed them since; read by ioredis at each connect.
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
    connection.on('error', (error: Error) => this.#tellAll({ kind: 'fault', error: withoutLogin(error) }));
    connection.on('ready', () => {
      // Closed already.
      if (this.#connection === connection) void this.#subscribeAgain(connection);
    });
    this.#pingLater(connection);
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

  /** Goes on whether or not a ping is ever answered: the next connection may be half-open, too. */
  #pingLater(connection: Redis): void {
    this.#pingTimer = this.#clock.after(pingEveryMs, () => {
      const goOn = (): void => {
        if (this.#connection !== connection || this.#pingTimer !== deadline) return;
        deadline.cancel();
        this.#pingLater(connection);
      };
      const deadline = this.#clock.after(pingDeadlineMs, () => {
        if (connection.status === 'ready' || connection.status === 'connect') connection.disconnect(true);
        goOn();
      });
      this.#pingTimer = deadline;
      if (isCluster(this.#client) && !isMember(this.#client, connection)) connection.disconnect(true);
      if (connection.status !== 'ready') return;
      const answer = this.#isRefused ? this.#subscribeAgain(connection) : connection.ping();
      answer.then(goOn, goOn);
    });
  }
}
