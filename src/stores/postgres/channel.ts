import { asMicrotask, type Clock, inTime, outsideRequests, type Timer } from '../../core/base/clock.ts';
import { LockConfigError } from '../../core/model/errors/mistakes.ts';
import type { StoreListener, StoreMessage, SubscribeOptions, Unsubscribe } from '../../core/model/store.ts';
import { storeError } from './errors.ts';
import { ListenSession, type PostgresListener } from './listen-session.ts';
import { readMessage } from './replies.ts';

/** Before every channel. */
const prefix = 'reenlock:';
/** The longest name of a channel in PostgreSQL. */
const maxChannelBytes = 63;
const lastRetryMs = 2_000;
/** A probe that has not arrived after this time counts as lost if there is a pooler. */
const maxProbeMs = 1_000;

const pollingWarning = {
  kind: 'warning',
  code: 'LOCK_POSTGRES_POLLING',
  message:
    "The lock store can't LISTEN over this connection, because a pooler such as PgBouncer lends a server connection for one transaction only: waiters poll every `pollMs`. Give the store a `listen` that connects to the server itself, or `listen: false` and a shorter `pollMs`",
} as const satisfies StoreMessage;

/** The parts of its store that the channel needs. */
export interface ChannelHost {
  /** Creates a client that is not connected yet. Undefined with `listen: false`. */
  readonly connect: (() => PostgresListener) | undefined;
  /** Sends a message to a channel through the pool. Resolves with the name of the server. */
  notify(channel: string, text: string): Promise<string>;
}

interface Connection {
  readonly session: ListenSession;
  /** Resolves when messages arrive on it, or when it is certain that none can. */
  readonly ready: Promise<void>;
}

/**
 * Receives the messages of a PostgreSQL store, on a separate connection. The connection is opened for the first subscription and
 * closed after the last one. A lost connection is opened again, with as many tries as it takes. A new connection is tested with a
 * probe, a message that is sent through the pool. If a pooler loses the probe, the connection is closed, and the waiters of this
 * store only poll.
 */
export class PostgresChannel {
  readonly #host: ChannelHost;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #freedChannel: string;
  /** By channel. */
  readonly #listeners = new Map<string, StoreListener>();
  /** The channels of the processes that listen for free keys. */
  readonly #freedListeners = new Set<string>();
  #connection: Connection | undefined;
  /** Opens the connection again. Started when it is lost, cleared after the last subscription. */
  #retry: Timer | undefined;
  #attempts = 0;
  #onProbe: ((text: string) => void) | undefined;
  #isPollingOnly: boolean;

  constructor(host: ChannelHost, schema: string, timeoutMs: number, clock: Clock) {
    this.#host = host;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#freedChannel = `${prefix}freed:${schema}`;
    this.#isPollingOnly = host.connect === undefined;
  }

  /** Whether messages of other processes can't arrive. */
  get isPollingOnly(): boolean {
    return this.#isPollingOnly;
  }

  /** Must be called with the name of the server on which a process waits: the channel listens there. */
  follow(server: string | undefined): void {
    if (server !== undefined) this.#connection?.session.expectServer(server);
  }

  async subscribe(process: string, listener: StoreListener, options: SubscribeOptions = {}): Promise<Unsubscribe> {
    const channel = channelOf(process);
    const bytes = Buffer.byteLength(channel);
    if (bytes > maxChannelBytes) {
      throw new LockConfigError(
        `Expected the part of a process's name behind its last \`~\` to be ${maxChannelBytes - prefix.length} bytes at most, got ${bytes - prefix.length}`,
      );
    }
    this.#listeners.set(channel, listener);
    if (options.freed) this.#freedListeners.add(channel);
    const wasPollingOnly = this.#isPollingOnly;
    try {
      await this.#listen(channel);
    } catch (error) {
      await this.#unsubscribe(channel);
      throw storeError('subscribe', error, false);
    }
    if (wasPollingOnly && this.#host.connect !== undefined) listener(pollingWarning);
    return () => this.#unsubscribe(channel);
  }

  /** Delivers a message to the processes of this store when the server can't. */
  deliver(process: string, text: string): void {
    asMicrotask(() => this.#dispatch(process === '' ? this.#freedChannel : channelOf(process), text));
  }

  async #listen(channel: string): Promise<void> {
    if (this.#host.connect === undefined) return;
    this.#connection ??= this.#open(this.#host.connect);
    const { session, ready } = this.#connection;
    await ready;
    if (this.#isPollingOnly) return;
    const listening = async (): Promise<void> => {
      await session.listen(channel);
      if (this.#freedListeners.has(channel)) await session.listen(this.#freedChannel);
      await session.markReachable(channel);
    };
    await inTime(this.#clock, this.#timeoutMs, listening());
  }

  async #unsubscribe(channel: string): Promise<void> {
    this.#listeners.delete(channel);
    const isLastFreed = this.#freedListeners.delete(channel) && this.#freedListeners.size === 0;
    const connection = this.#connection;
    if (this.#listeners.size === 0) {
      this.#retry?.cancel();
      this.#connection = undefined;
      this.#isPollingOnly = this.#host.connect === undefined;
      await connection?.session.close();
      return;
    }
    if (connection === undefined || this.#isPollingOnly) return;
    const ending = async (): Promise<void> => {
      await connection.ready;
      await connection.session.unmarkReachable(channel);
      await connection.session.unlisten(channel);
      if (isLastFreed) await connection.session.unlisten(this.#freedChannel);
    };
    // If the connection is lost meanwhile, it no longer listens.
    await inTime(this.#clock, this.#timeoutMs, ending()).catch(() => {});
  }

  #open(connect: () => PostgresListener): Connection {
    const session = new ListenSession(connect, this.#clock, {
      onMessage: (channel, text) => this.#dispatch(channel, text),
      onEnd: (error) => this.#lost(connection, error),
    });
    const ready = outsideRequests(() => inTime(this.#clock, 3 * this.#timeoutMs, this.#start(session)));
    const connection = { session, ready };
    ready.catch((error: Error) => this.#lost(connection, error));
    return connection;
  }

  async #start(session: ListenSession): Promise<void> {
    await session.open();
    const channels = [...this.#listeners.keys()];
    for (const channel of channels) await session.listen(channel);
    if (this.#freedListeners.size > 0) await session.listen(this.#freedChannel);
    if (!(await this.#hasProbeArrived(session, channels[0] ?? this.#freedChannel))) {
      await session.close();
      this.#isPollingOnly = true;
      this.#notifyAll(pollingWarning);
      return;
    }
    await session.watch();
    for (const channel of channels) await session.markReachable(channel);
    this.#attempts = 0;
    this.#notifyAll({ kind: 'resubscribed' });
  }

  /** Whether a message that is sent through the pool arrives in the session. */
  async #hasProbeArrived(session: ListenSession, channel: string): Promise<boolean> {
    const probe = `probe ${this.#clock.randomId()}`;
    const arrived = new Promise<void>((resolve) => {
      this.#onProbe = (text) => {
        if (text === probe) resolve();
      };
    });
    const server = await this.#host.notify(channel, probe);
    try {
      await inTime(this.#clock, Math.min(maxProbeMs, this.#timeoutMs), arrived);
      return true;
    } catch {
      if (await session.isPooledOn(server)) return false;
    }
    // Without a pooler it may just be late. On another server it never arrives, which may be about to change.
    await inTime(this.#clock, this.#timeoutMs, arrived).catch(() => {
      throw new Error(
        'Expected a message that was sent through the pool to arrive on the connection that listens, got none: connect both to the same database',
      );
    });
    return true;
  }

  #dispatch(channel: string, text: string): void {
    this.#onProbe?.(text);
    const message = readMessage(text);
    if (message === undefined) return;
    if (channel !== this.#freedChannel) this.#listeners.get(channel)?.(message);
    else for (const each of this.#freedListeners) this.#listeners.get(each)?.(message);
  }

  #lost(connection: Connection, error: Error): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    connection.session.destroy();
    this.#notifyAll({ kind: 'fault', error });
    const { connect } = this.#host;
    if (this.#listeners.size === 0 || connect === undefined) return;
    this.#attempts += 1;
    this.#retry = outsideRequests(() =>
      this.#clock.after(Math.min(this.#attempts * 50, lastRetryMs), () => {
        this.#connection ??= this.#open(connect);
      }),
    );
  }

  #notifyAll(message: StoreMessage): void {
    for (const listener of [...this.#listeners.values()]) listener(message);
  }
}

/** The channel of a process has only the random part of its name, as `channel_of` in sql/queue.ts: any `instance` fits. */
function channelOf(process: string): string {
  return prefix + process.slice(process.lastIndexOf('~') + 1);
}
