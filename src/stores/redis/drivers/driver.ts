import type { Link, LinkWatch } from '../../../core/base/link.ts';

/** One word of a command. */
export type RedisArgument = string | number;

/** A command: its name in small letters, then its arguments. */
export type RedisCommand = readonly [name: string, ...args: RedisArgument[]];

/** The results of several commands, in order. */
export type RedisReplies = readonly PromiseSettledResult<unknown>[];

/** Sends commands, in order. */
export interface RedisSender {
  /** The client's prefix of every key of a command, but not of patterns and channels. */
  readonly keyPrefix: string;
  /** Rejects with the client's error. It may never settle. */
  send(command: RedisCommand): Promise<unknown>;
  /** Sends commands together. Resolves when all have settled. */
  sendAll(commands: readonly RedisCommand[]): Promise<RedisReplies>;
  /** As `send`, for a script, if there is a faster way. Calls of one round may be written together. */
  sendScript?(command: RedisCommand): Promise<unknown>;
}

/**
 * The parts of an application's client that the stores need, with the same names for each library. A driver neither changes nor
 * closes the client. Only the files of drivers know a library.
 */
export interface RedisDriver extends RedisSender {
  readonly link: Link;
  /**
   * The link that commands wait for. The client would queue them, and send them when nobody waits for the replies any more.
   */
  readonly connection: LinkWatch;
  /** Present for a client of a cluster. */
  readonly cluster: RedisClusterDriver | undefined;
  /** The present connections; undefined if there is none yet. */
  connectionEpoch(): unknown;
  /**
   * Whether the connections are still the same: none was lost and none was opened in between. Every server that got a call
   * meanwhile has replied to it, redirections included, and no copy of the call is in flight.
   */
  isSameEpoch(epoch: unknown): boolean;
  /** The code of an error that a server replied with; of several redirections, of the last one. Undefined for other errors. */
  codeOf(error: unknown): string | undefined;
  /**
   * Opens a connection for subscriptions. It connects again until it is closed, in a cluster to another node each time.
   * Throws if a cluster has no node, which it has while the link is up.
   */
  openSubscriber(listener: SubscriberListener): RedisSubscriber;
  /**
   * A new connection, not open yet: to the client's server, in a cluster to the given primary. Undefined if the client has no
   * connection to that primary.
   */
  createConnection(primary?: string): RedisConnection | undefined;
}

/** What a client of a cluster knows about its nodes. A primary's name stays the same while its address does. */
export interface RedisClusterDriver {
  /** Reads the slots again. The client connects again to a primary that it lost only then. */
  refresh(): Promise<void>;
  /** The names of all primaries, sorted. The client may be connected to only some of them. */
  primaries(): readonly string[];
  /** The primary that has a key, as far as the client knows. The key is named without the client's prefix. */
  primaryOf(key: string): string | undefined;
  primaryOfSlot(slot: number): string | undefined;
  /** The client's own connection to a primary; undefined if it has none. */
  node(primary: string): RedisSender | undefined;
  /** Opens a connection to a primary for the channels of its slots; undefined if the client has none to it. */
  openShard(primary: string, listener: ShardListener): RedisShard | undefined;
}

/** Events of a connection for subscriptions. */
export interface SubscriberListener {
  onMessage(channel: string, text: string): void;
  /** Called with each connection: nothing is subscribed on it yet, or everything is. */
  onReady(): void;
  onFault(error: Error): void;
}

/** A connection for subscriptions. */
export interface RedisSubscriber {
  /** Whether it can subscribe now: `onReady` was called, and the connection was not lost since. */
  readonly isReady: boolean;
  /** Whether its server has left the cluster: it gets no messages, but replies to pings. */
  readonly isStranded: boolean;
  subscribe(channels: readonly string[]): Promise<unknown>;
  /** Without a connection there is nothing to end: it resolves. */
  unsubscribe(channels: readonly string[]): Promise<unknown>;
  ping(): Promise<unknown>;
  /** Drops a connection that does not respond, and opens another one. */
  reconnect(): void;
  close(): void;
}

/** Events of a connection for the channels of slots. */
export interface ShardListener {
  onMessage(channel: string, text: string): void;
  /** The server ended an unnamed subscription because its slot moved. */
  onMoved(): void;
  /** The connection is lost. It is not opened again. */
  onClosed(): void;
}

/** A connection for the channels of slots. It never reconnects. */
export interface RedisShard {
  subscribe(channel: string): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  ping(): Promise<unknown>;
  close(): void;
}

/** A separate connection of the store. It never reconnects and sends nothing twice: it is one session on the server. */
export interface RedisConnection extends RedisSender {
  /** Whether it is open, in the database that the client has selected last. */
  readonly isUsable: boolean;
  /** Connects. Rejects if that fails. */
  open(): Promise<void>;
  /** Lets it keep the process alive again. */
  ref(): void;
  /** It keeps the process alive no longer. */
  unref(): void;
  close(): void;
}

/** The error of a driver that has not given a command to a connection, and never will. */
export class NotSentError extends Error {
  override readonly name = 'NotSentError';
}
