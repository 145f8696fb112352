import type { Cluster, Redis } from 'ioredis';
import { type Clock, outsideRequests, systemClock, type Timer } from '../../../base/clock.ts';
import type { StoreListener } from '../../../model/store.ts';
import { readMessage } from '../replies.ts';
import { subscriberOptions } from '../subscriber.ts';
import { primaryOf, slotOf } from './cluster.ts';

const lookEveryMs = 5_000;
/** How long a server is left alone that refused a subscription or was lost. */
const pauseMs = 10_000;
/** Whoever waits for more locks than this hears of the rest by PUBLISH. */
const mostChannels = 10_000;

interface Channel {
  readonly slot: number;
  readonly process: string;
  /** On the clock of this process. */
  untilMs: number;
  /** The primary that was asked for it last; undefined where that ended it, or never had it. */
  nodeKey: string | undefined;
}

interface Connection {
  readonly redis: Redis;
  isPinged: boolean;
}

/**
 * The messages that a cluster need not send to all its servers: a process listens, on the primary of a lock's slot, to a
 * channel in that slot while it waits for the lock, and for a while after. A subscription is asked for when the server has
 * said that somebody is queued, and nobody waits for it: until it is in force, and whenever it is not, scripts find no
 * listener and take PUBLISH. So whatever fails here is left, and tried again with a later answer.
 */
export class RedisShards {
  readonly #cluster: Cluster;
  readonly #clock: Clock;
  readonly #listeners = new Map<string, StoreListener>();
  readonly #channels = new Map<string, Channel>();
  readonly #connections = new Map<string, Connection>();
  readonly #pausedUntilMs = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(cluster: Cluster, clock: Clock = systemClock) {
    this.#cluster = cluster;
    this.#clock = clock;
  }

  /** From now on the process may listen. */
  open(process: string, listener: StoreListener): void {
    this.#listeners.set(process, listener);
  }

  /** Ends what the process listens to; with the last one, every connection. */
  close(process: string): void {
    this.#listeners.delete(process);
    for (const [name, channel] of this.#channels) if (channel.process === process) this.#drop(name, channel);
    if (this.#listeners.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const nodeKey of [...this.#connections.keys()]) this.#disconnect(nodeKey);
    this.#pausedUntilMs.clear();
  }

  /** The process waits for the lock with this record: it is to hear of it for so long. */
  listen(record: string, process: string, forMs: number): void {
    if (!this.#listeners.has(process)) return;
    // As the scripts name it, which get the record with the client's key prefix.
    const name = `${this.#cluster.options.keyPrefix ?? ''}${record}:${process}`;
    let channel = this.#channels.get(name);
    if (channel === undefined) {
      if (this.#channels.size >= mostChannels) return;
      channel = { slot: slotOf(name), process, untilMs: 0, nodeKey: undefined };
      this.#channels.set(name, channel);
    }
    channel.untilMs = Math.max(channel.untilMs, this.#nowMs + forMs);
    this.#timer ??= outsideRequests(() => this.#lookLater());
    const nodeKey = this.#placeOf(channel);
    if (nodeKey === undefined || nodeKey === channel.nodeKey) return;
    this.#unsubscribe(name, channel);
    this.#subscribe(name, channel, nodeKey);
  }

  get #nowMs(): number {
    return this.#clock.now().monoMs;
  }

  /** The primary of its slot; nowhere while that is left alone. */
  #placeOf({ slot }: Channel): string | undefined {
    const nodeKey = this.#cluster.slots[slot]?.[0];
    if (nodeKey === undefined || (this.#pausedUntilMs.get(nodeKey) ?? 0) > this.#nowMs) return undefined;
    return nodeKey;
  }

  #subscribe(name: string, channel: Channel, nodeKey: string): void {
    const connection = this.#connections.get(nodeKey) ?? outsideRequests(() => this.#connect(nodeKey));
    if (connection === undefined) return;
    channel.nodeKey = nodeKey;
    connection.redis.ssubscribe(name).catch((error: Error) => {
      // Lost, or closed.
      if (this.#connections.get(nodeKey) !== connection) return;
      if (channel.nodeKey === nodeKey) channel.nodeKey = undefined;
      // It still has the others.
      if (!error.message.startsWith('MOVED ')) this.#pausedUntilMs.set(nodeKey, this.#nowMs + pauseMs);
    });
  }

  #unsubscribe(name: string, channel: Channel): void {
    const { nodeKey } = channel;
    channel.nodeKey = undefined;
    if (nodeKey === undefined) return;
    // A server that has lost the slot has ended it.
    this.#connections
      .get(nodeKey)
      ?.redis.sunsubscribe(name)
      .catch(() => undefined);
  }

  #drop(name: string, channel: Channel): void {
    // Forgotten with another one, whose slot has moved, it may still be in force.
    channel.nodeKey ??= this.#placeOf(channel);
    this.#unsubscribe(name, channel);
    this.#channels.delete(name);
  }

  #connect(nodeKey: string): Connection | undefined {
    const redis = primaryOf(this.#cluster, nodeKey)?.duplicate({
      ...subscriberOptions,
      // It is a command that an ioredis 5 may send when a subscription has forbidden it already.
      enableReadyCheck: false,
      readOnly: false,
      retryStrategy: () => null,
    });
    if (redis === undefined) return undefined;
    const connection = { redis, isPinged: false };
    this.#connections.set(nodeKey, connection);
    redis.on('smessage', (name: string, text: string) => {
      const message = readMessage(text);
      const channel = this.#channels.get(name);
      if (message && channel) this.#listeners.get(channel.process)?.(message);
    });
    // A server ended a subscription, whose slot has moved. Which one is not said; who still has one may ask again.
    redis.on('moved', () => this.#forget(nodeKey));
    // An old ioredis takes the end of a subscription for one.
    redis.on('error', () => redis.disconnect());
    redis.once('end', () => {
      if (this.#connections.get(nodeKey) === connection) this.#lost(nodeKey);
    });
    return connection;
  }

  /** Answers whether there was a channel. */
  #forget(nodeKey: string): boolean {
    let had = false;
    for (const channel of this.#channels.values()) {
      if (channel.nodeKey !== nodeKey) continue;
      channel.nodeKey = undefined;
      had = true;
    }
    return had;
  }

  /** What was on its way is lost: everybody asks, and the answers say where to listen. */
  #lost(nodeKey: string): void {
    this.#connections.delete(nodeKey);
    this.#pausedUntilMs.set(nodeKey, this.#nowMs + pauseMs);
    if (this.#forget(nodeKey)) for (const listener of this.#listeners.values()) listener({ kind: 'resubscribed' });
  }

  #disconnect(nodeKey: string): void {
    const connection = this.#connections.get(nodeKey);
    this.#connections.delete(nodeKey);
    connection?.redis.disconnect();
  }

  /** Runs while there are channels; cleared by the last `close`. */
  #lookLater(): Timer {
    return this.#clock.after(lookEveryMs, () => {
      this.#look();
      this.#timer = this.#channels.size + this.#connections.size > 0 ? this.#lookLater() : undefined;
    });
  }

  /** Ends what nobody needs any more, and connections that have not answered since the last look: they are half-open. */
  #look(): void {
    for (const [nodeKey, untilMs] of this.#pausedUntilMs) {
      if (untilMs <= this.#nowMs) this.#pausedUntilMs.delete(nodeKey);
    }
    const used = new Set<string | undefined>();
    for (const [name, channel] of this.#channels) {
      if (channel.untilMs <= this.#nowMs) this.#drop(name, channel);
      else used.add(channel.nodeKey ?? this.#placeOf(channel));
    }
    for (const [nodeKey, connection] of [...this.#connections]) {
      if (!used.has(nodeKey)) this.#disconnect(nodeKey);
      else if (connection.isPinged) connection.redis.disconnect();
      else this.#ping(connection);
    }
  }

  #ping(connection: Connection): void {
    connection.isPinged = true;
    const answered = (): void => {
      connection.isPinged = false;
    };
    // One that failed is no answer.
    connection.redis.ping().then(answered, () => undefined);
  }
}
