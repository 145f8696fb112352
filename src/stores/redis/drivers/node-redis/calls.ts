import type { ConnectionEvents } from '../client-link.ts';
import { NotSentError, type RedisCommand, type RedisReplies, type RedisSender } from '../driver.ts';

/**
 * The used part of a node-redis client for one server, which a client for Sentinel or a cluster has for each server. Its own types
 * depend on the modules and types that it was created with.
 */
export interface NodeRedisClient extends ConnectionEvents {
  on(event: 'ready' | 'error' | 'end' | 'sharded-channel-moved', listener: (error: Error) => void): unknown;
  readonly isOpen: boolean;
  readonly isReady: boolean;
  readonly socketEpoch: number;
  readonly options?: NodeRedisOptions | undefined;
  connect(): Promise<unknown>;
  destroy(): void;
  ref(): void;
  unref(): void;
  duplicate(overrides: NodeRedisOptions): NodeRedisClient;
  sendCommand(args: readonly string[], options: ReplyOptions): Promise<unknown>;
  subscribe(channels: string[], listener: (text: string, channel: string) => void): Promise<unknown>;
  unsubscribe(channels: string[], listener: (text: string, channel: string) => void): Promise<unknown>;
  sSubscribe(channel: string, listener: (text: string, channel: string) => void): Promise<unknown>;
  sUnsubscribe(channel: string): Promise<unknown>;
}

/** The options that are read here, or set for the store's own connections. */
export interface NodeRedisOptions {
  readonly keyPrefix?: unknown;
  readonly database?: number;
  readonly readonly?: boolean;
  readonly disableOfflineQueue?: boolean;
  readonly pingInterval?: undefined;
  readonly commandsQueueMaxLength?: undefined;
  readonly commandOptions?: undefined;
  readonly clientSideCache?: undefined;
  readonly emitInvalidate?: undefined;
  readonly maintNotifications?: 'disabled';
  readonly socket?: object & { readonly reconnectStrategy?: false | ((attempt: number) => number) };
}

/**
 * The store gets the types that it expects, whatever types the client maps replies to. The client's time limit for unwritten
 * commands is off: calls of a store have their own deadlines, and the limit creates an `AbortSignal` for each command. Without it
 * a cycle takes half as much processor time.
 */
export const replyOptions: ReplyOptions = { typeMapping: {}, timeout: undefined };

export interface ReplyOptions {
  readonly typeMapping: object;
  readonly timeout: undefined;
}

/** Throws the client's error for a command again. If its `commandsQueueMaxLength` was reached, the command was not sent. */
export function knownRefusal(error: unknown): never {
  if (!(error instanceof Error && error.message === 'The queue is full')) throw error;
  throw new NotSentError("The queue of the lock store's client is full", { cause: error });
}

/** Sends on a client of node-redis. The commands of one tick are written together, at the end of the event loop's round. */
export class NodeRedisSender implements RedisSender {
  readonly keyPrefix: string;
  protected readonly client: NodeRedisClient;

  constructor(client: NodeRedisClient, keyPrefix: unknown = client.options?.keyPrefix) {
    this.client = client;
    this.keyPrefix = String(keyPrefix ?? '');
  }

  send(command: RedisCommand): Promise<unknown> {
    return this.client.sendCommand(withPrefix(command, this.keyPrefix), replyOptions).catch(knownRefusal);
  }

  sendAll(commands: readonly RedisCommand[]): Promise<RedisReplies> {
    return Promise.allSettled(commands.map((command) => this.send(command)));
  }
}

/**
 * The code of an error reply: its first word. The classes of node-redis's errors may have other names in a bundle, but none
 * of its own messages begins with a word in capitals.
 */
export function nodeRedisCodeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  // It has the last one as its cause.
  if (error.message === 'Too many Cluster redirections') return nodeRedisCodeOf(error.cause);
  return /^[A-Z]+(?= |$)/.exec(error.message)?.[0];
}

/** The words of a command. The client does not put its key prefix before the keys of a command that it does not know. */
export function withPrefix([name, ...args]: RedisCommand, prefix: string): string[] {
  const words = [name, ...args.map(String)];
  if (prefix === '') return words;
  const [first, end] = keysOf(name, args);
  return words.map((word, place) => (place >= first && place < end ? prefix + word : word));
}

/** The first key of a command, if it has one: the client of a cluster sends the command to the server of that key. */
export function firstKeyOf([name, ...args]: RedisCommand, words: readonly string[]): string | undefined {
  const [first, end] = keysOf(name, args);
  return first < end ? words[first] : undefined;
}

/** Where the keys of the commands begin and end that stores send. */
function keysOf(name: string, args: readonly (string | number)[]): readonly [first: number, end: number] {
  if (name === 'evalsha' || name === 'eval') return [3, 3 + Number(args[1])];
  return ['get', 'set', 'del', 'watch'].includes(name) ? [1, 2] : [0, 0];
}
