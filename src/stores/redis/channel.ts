import { type Clock, inTime, systemClock, type Timer } from '../../core/base/clock.ts';
import { inBackground } from '../../core/base/safely.ts';
import type { StoreListener, StoreMessage, SubscribeOptions, Unsubscribe } from '../../core/model/store.ts';
import type { RedisDriver, RedisSubscriber } from './drivers/driver.ts';
import { hideCommand } from './drivers/hide-command.ts';
import { storeError } from './errors.ts';
import { readMessage } from './replies.ts';
import { apartWarning, connectsAgainAfter, missesUntilWarning, SameServer } from './same-server.ts';

const pingEveryMs = 5_000;
const pingTimeoutMs = 2_000;
/** How long a subscribe or unsubscribe may take: without a server, the client library tries for ever. */
const replyTimeoutMs = 2_000;

/**
 * The messages of a Redis store, on one separate connection. The connection is opened with the first subscription. It is closed
 * when the last subscription ends, or when a first one is not active within two seconds. It reconnects for ever, in a cluster to
 * another node each time. Pings detect a half-open connection. After each ping, its server is compared with the client's: on
 * another server it gets no messages.
 */
export class RedisChannel {
  readonly #driver: RedisDriver;
  readonly #prefix: string;
  readonly #clock: Clock;
  readonly #listeners = new Map<string, StoreListener>();
  /** The listeners that also listen for free keys, by the same names. They share one channel. */
  readonly #freedListeners = new Map<string, StoreListener>();
  readonly #freedChannel: string;
  #connection: RedisSubscriber | undefined;
  /** Called, and forgotten, when the connection is ready. */
  readonly #onReady = new Set<() => void>();
  #pingTimer: Timer | undefined;
  /** The server denied the resubscription (ACL). It is tried again instead of each ping. */
  #isRefused = false;
  /** Of the present connection; another one after each reconnect. */
  #sameServer: SameServer;
  /** How many checks in succession found the calls on another server. */
  #misses = 0;

  constructor(driver: RedisDriver, prefix: string, clock: Clock = systemClock) {
    this.#driver = driver;
    this.#prefix = prefix;
    this.#freedChannel = `${prefix}freed`;
    this.#clock = clock;
    this.#sameServer = new SameServer(driver);
  }

  /** Whether there is no subscription. */
  get isIdle(): boolean {
    return this.#listeners.size === 0;
  }

  async subscribe(process: string, listener: StoreListener, options: SubscribeOptions = {}): Promise<Unsubscribe> {
    const channel = this.#prefix + process;
    this.#listeners.set(channel, listener);
    if (options.freed) this.#freedListeners.set(channel, listener);
    let hasEnded = false;
    let stopWaiting = (): void => {};
    const send = async (): Promise<void> => {
      // A connection to a node of a cluster needs a client that knows the nodes.
      if (this.#driver.cluster) await this.#driver.connection.connected();
      // Nothing would close a connection that is opened now.
      if (hasEnded) return;
      this.#connection ??= this.#open();
      const connection = this.#connection;
      if (!connection.isReady) {
        await new Promise<void>((resolve) => {
          this.#onReady.add(resolve);
          stopWaiting = () => this.#onReady.delete(resolve);
        });
      }
      if (hasEnded) return;
      await connection.subscribe([channel, ...(options.freed ? [this.#freedChannel] : [])]);
    };
    try {
      await inTime(this.#clock, replyTimeoutMs, send());
    } catch (error) {
      hasEnded = true;
      // Without a server, the caller tries again and again on the same connection: no listener may stay on it.
      stopWaiting();
      // The caller gets no function to end it with.
      this.#unsubscribe(channel).catch(() => undefined);
      throw storeError(this.#driver, 'subscribe', error);
    }
    return () => this.#unsubscribe(channel);
  }

  async #unsubscribe(channel: string): Promise<void> {
    this.#listeners.delete(channel);
    const isLastFreed = this.#freedListeners.delete(channel) && this.#freedListeners.size === 0;
    const connection = this.#connection;
    if (connection === undefined) return;
    if (this.#listeners.size > 0) {
      const ended = connection.unsubscribe([channel, ...(isLastFreed ? [this.#freedChannel] : [])]);
      await inTime(this.#clock, replyTimeoutMs, ended).catch((error: Error) => {
        // The end of the last subscription closed the connection meanwhile, which ends this one as well.
        if (this.#connection === connection) throw error;
      });
      return;
    }
    this.#connection = undefined;
    this.#pingTimer?.cancel();
    connection.close();
  }

  #open(): RedisSubscriber {
    const connection = this.#driver.openSubscriber({
      onMessage: (channel, text) => {
        const message = readMessage(text);
        if (message === undefined) return;
        if (channel !== this.#freedChannel) this.#listeners.get(channel)?.(message);
        else for (const listener of this.#freedListeners.values()) listener(message);
      },
      onFault: (error) => this.#notifyAll({ kind: 'fault', error: hideCommand(error) }),
      onReady: () => {
        // It may have been closed already.
        if (this.#connection !== connection) return;
        for (const resolve of this.#onReady) resolve();
        this.#onReady.clear();
        this.#sameServer = new SameServer(this.#driver);
        inBackground(this.#subscribeAgain(connection));
      },
    });
    this.#startPinging(connection);
    return connection;
  }

  async #subscribeAgain(connection: RedisSubscriber): Promise<void> {
    const freed = this.#freedListeners.size > 0 ? [this.#freedChannel] : [];
    try {
      await connection.subscribe([...this.#listeners.keys(), ...freed]);
      this.#isRefused = false;
      this.#notifyAll({ kind: 'resubscribed' });
    } catch (error) {
      this.#isRefused = true;
      this.#notifyAll({ kind: 'fault', error: hideCommand(error as Error) });
    }
  }

  #notifyAll(message: StoreMessage): void {
    for (const listener of this.#listeners.values()) listener(message);
  }

  /** Continues whether or not a ping gets a reply: the next connection may be half-open, too. */
  #startPinging(connection: RedisSubscriber): void {
    this.#pingTimer = this.#clock.after(pingEveryMs, () => {
      const continuePinging = (): void => {
        if (this.#connection !== connection || this.#pingTimer !== deadline) return;
        deadline.cancel();
        this.#startPinging(connection);
      };
      const deadline = this.#clock.after(pingTimeoutMs, () => {
        connection.reconnect();
        continuePinging();
      });
      this.#pingTimer = deadline;
      if (connection.isStranded) connection.reconnect();
      if (!connection.isReady) return;
      const reply = this.#isRefused ? this.#subscribeAgain(connection) : connection.ping();
      reply.then(continuePinging, continuePinging);
      // Every subscription from before the ping is active now. A failed ping shows nothing.
      reply.then(
        () => this.#compareServers(connection),
        () => undefined,
      );
    });
  }

  /** Connects again if the calls go to another server. Nothing waits for this, since a client may never settle. */
  async #compareServers(connection: RedisSubscriber): Promise<void> {
    const [channel] = this.#listeners.keys();
    if (channel === undefined || this.#isRefused) return;
    const sameServer = this.#sameServer;
    const hasListener = await sameServer.hasListener(channel);
    const isCurrent = this.#connection === connection && this.#sameServer === sameServer;
    if (hasListener === undefined || !isCurrent || !this.#listeners.has(channel)) return;
    this.#misses = hasListener ? 0 : this.#misses + 1;
    if (hasListener) return;
    if (this.#misses === missesUntilWarning) this.#notifyAll({ kind: 'warning', ...apartWarning });
    if (connectsAgainAfter(this.#misses)) connection.reconnect();
  }
}
