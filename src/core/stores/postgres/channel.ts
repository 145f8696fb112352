import { asMicrotask, type Clock, outsideRequests, type Timer } from '../../base/clock.ts';
import { LockConfigError } from '../../model/errors.ts';
import type { StoreListener, StoreMessage, SubscribeOptions, Unsubscribe } from '../../model/store.ts';
import { storeError } from './errors.ts';
import { ListenSession, type PostgresListener } from './listen-session.ts';
import { inTime } from './pool.ts';
import { readMessage } from './replies.ts';

/** Before the name of a process; the same in sql/queue.ts. */
const prefix = 'reenlock:';
/** PostgreSQL knows no longer names of channels. */
const maxChannelBytes = 63;
const lastRetryMs = 2_000;
/** After so long a message that was sent through a pooler counts as lost. */
const maxProofMs = 1_000;

const deafWarning = {
  kind: 'warning',
  code: 'LOCK_POSTGRES_POLLING',
  message:
    "The lock store can't LISTEN over this connection, since a pooler such as PgBouncer lends its connections for one transaction: waiters poll every `pollMs`. Give the store a `listen` that leads to the server itself, or `listen: false` and a shorter `pollMs`",
} as const satisfies StoreMessage;

/** What the channel needs of its store. */
export interface ChannelHost {
  /** Makes a client for a session, not connected yet; absent where there is to be none. */
  readonly connect: (() => PostgresListener) | undefined;
  /** Sends a message to a channel, over the pool. */
  notify(channel: string, text: string): Promise<unknown>;
}

interface Connection {
  readonly session: ListenSession;
  /** Resolves when it is in force. */
  readonly ready: Promise<void>;
}

/**
 * The messages of a PostgreSQL store, on one connection of its own: it is opened with the first subscription, and closed with
 * the end of the last one. Meanwhile it is opened again for ever. Before it counts, a message is sent to it over the pool.
 * If that is lost since a pooler is in between, the connection is closed, and the processes live by polling.
 */
export class PostgresChannel {
  readonly #host: ChannelHost;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #freedChannel: string;
  /** By channel. */
  readonly #listeners = new Map<string, StoreListener>();
  /** The channels of those that are told of free keys. */
  readonly #freedListeners = new Set<string>();
  #connection: Connection | undefined;
  /** Started when the connection is lost, cleared with the last subscription. */
  #retry: Timer | undefined;
  #attempts = 0;
  #onProof: ((text: string) => void) | undefined;
  #isDeaf: boolean;

  constructor(host: ChannelHost, schema: string, timeoutMs: number, clock: Clock) {
    this.#host = host;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#freedChannel = `${prefix}freed:${schema}`;
    this.#isDeaf = host.connect === undefined;
  }

  /** Whether no message of another process can come. */
  get isDeaf(): boolean {
    return this.#isDeaf;
  }

  async subscribe(process: string, listener: StoreListener, options: SubscribeOptions = {}): Promise<Unsubscribe> {
    const channel = prefix + process;
    if (Buffer.byteLength(channel) > maxChannelBytes) {
      const bytes = maxChannelBytes - prefix.length;
      throw new LockConfigError(`Expected the name of a process to be ${bytes} bytes at most, got ${process.length}`);
    }
    this.#listeners.set(channel, listener);
    if (options.freed) this.#freedListeners.add(channel);
    const wasDeaf = this.#isDeaf;
    try {
      await this.#listen(channel);
    } catch (error) {
      await this.#unsubscribe(channel);
      throw storeError('subscribe', error, false);
    }
    if (wasDeaf && this.#host.connect !== undefined) listener(deafWarning);
    return () => this.#unsubscribe(channel);
  }

  /** Gives a message to those processes of this store that it is for, where they can't hear it from the server. */
  deliver(process: string, text: string): void {
    asMicrotask(() => this.#dispatch(process === '' ? this.#freedChannel : prefix + process, text));
  }

  async #listen(channel: string): Promise<void> {
    if (this.#host.connect === undefined) return;
    this.#connection ??= this.#open(this.#host.connect);
    const { session, ready } = this.#connection;
    await ready;
    if (this.#isDeaf) return;
    const listening = async (): Promise<void> => {
      await session.listen(channel);
      if (this.#freedListeners.has(channel)) await session.listen(this.#freedChannel);
      await session.vouch(channel);
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
      this.#isDeaf = this.#host.connect === undefined;
      await connection?.session.close();
      return;
    }
    if (connection === undefined || this.#isDeaf) return;
    const ending = async (): Promise<void> => {
      await connection.ready;
      await connection.session.unvouch(channel);
      await connection.session.unlisten(channel);
      if (isLastFreed) await connection.session.unlisten(this.#freedChannel);
    };
    // A connection that is lost meanwhile listens to nothing.
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
    if (!(await this.#isHeard(session, channels[0] ?? this.#freedChannel))) {
      await session.close();
      this.#isDeaf = true;
      this.#tellAll(deafWarning);
      return;
    }
    await session.watch();
    for (const channel of channels) await session.vouch(channel);
    this.#attempts = 0;
    this.#tellAll({ kind: 'resubscribed' });
  }

  /** Whether what is sent over the pool comes to the session. */
  async #isHeard(session: ListenSession, channel: string): Promise<boolean> {
    const proof = `proof ${this.#clock.randomId()}`;
    const heard = new Promise<void>((resolve) => {
      this.#onProof = (text) => {
        if (text === proof) resolve();
      };
    });
    await this.#host.notify(channel, proof);
    try {
      await inTime(this.#clock, Math.min(maxProofMs, this.#timeoutMs), heard);
      return true;
    } catch {
      if (await session.isPooled()) return false;
    }
    // It is late, or never comes.
    await inTime(this.#clock, this.#timeoutMs, heard).catch(() => {
      throw new Error(
        'Expected a message from the pool at the connection that listens, and none came: do both lead to the same database?',
      );
    });
    return true;
  }

  #dispatch(channel: string, text: string): void {
    this.#onProof?.(text);
    const message = readMessage(text);
    if (message === undefined) return;
    if (channel !== this.#freedChannel) this.#listeners.get(channel)?.(message);
    else for (const each of this.#freedListeners) this.#listeners.get(each)?.(message);
  }

  #lost(connection: Connection, error: Error): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    connection.session.destroy();
    this.#tellAll({ kind: 'fault', error });
    const { connect } = this.#host;
    if (this.#listeners.size === 0 || connect === undefined) return;
    this.#attempts += 1;
    this.#retry = outsideRequests(() =>
      this.#clock.after(Math.min(this.#attempts * 50, lastRetryMs), () => {
        this.#connection ??= this.#open(connect);
      }),
    );
  }

  #tellAll(message: StoreMessage): void {
    for (const listener of [...this.#listeners.values()]) listener(message);
  }
}
