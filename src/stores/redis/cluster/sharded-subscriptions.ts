import { type Clock, outsideRequests, systemClock, type Timer } from '../../../core/base/clock.ts';
import type { StoreListener } from '../../../core/model/store.ts';
import type { RedisClusterDriver, RedisDriver, RedisShard } from '../drivers/driver.ts';
import { readMessage } from '../replies.ts';
import { slotOf } from './slots.ts';

const checkEveryMs = 5_000;
/** How long a server is left alone after it refused a subscription or was lost. */
const pauseMs = 10_000;
/** A process that waits for more locks than this gets the messages of the others by PUBLISH. */
const maxChannels = 10_000;

interface Channel {
  readonly slot: number;
  readonly process: string;
  /** On the clock of this process. */
  untilMs: number;
  /** The primary of the last subscription; undefined if that has ended or was never made. */
  nodeKey: string | undefined;
}

interface Connection {
  readonly shard: RedisShard;
  isPinged: boolean;
}

/**
 * Messages that a cluster does not have to send to all of its servers. A process listens to a channel in the slot of a
 * lock, on the primary of that slot, while it waits for the lock and for a while after. It subscribes when the server has
 * replied that the process is queued, and nothing waits for the subscription: as long as it is not in force, the scripts
 * find no listener and use PUBLISH. A failure is therefore ignored here, and the next such reply tries again.
 */
export class ShardedSubscriptions {
  readonly #driver: RedisDriver;
  readonly #cluster: RedisClusterDriver;
  readonly #clock: Clock;
  readonly #listeners = new Map<string, StoreListener>();
  readonly #channels = new Map<string, Channel>();
  readonly #connections = new Map<string, Connection>();
  readonly #pausedUntilMs = new Map<string, number>();
  #timer: Timer | undefined;

  constructor(driver: RedisDriver, cluster: RedisClusterDriver, clock: Clock = systemClock) {
    this.#driver = driver;
    this.#cluster = cluster;
    this.#clock = clock;
  }

  /** From now on the process may listen. */
  open(process: string, listener: StoreListener): void {
    this.#listeners.set(process, listener);
  }

  /** Ends all subscriptions of a process; with the last process, all connections. */
  close(process: string): void {
    this.#listeners.delete(process);
    for (const [name, channel] of this.#channels) if (channel.process === process) this.#drop(name, channel);
    if (this.#listeners.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const nodeKey of [...this.#connections.keys()]) this.#disconnect(nodeKey);
    this.#pausedUntilMs.clear();
  }

  /** Makes a process listen to the messages about the lock with this record for `forMs`. */
  listen(record: string, process: string, forMs: number): void {
    if (!this.#listeners.has(process)) return;
    // As the scripts name it: they get the record with the client's key prefix.
    const name = `${this.#driver.keyPrefix}${record}:${process}`;
    let channel = this.#channels.get(name);
    if (channel === undefined) {
      if (this.#channels.size >= maxChannels) return;
      channel = { slot: slotOf(name), process, untilMs: 0, nodeKey: undefined };
      this.#channels.set(name, channel);
    }
    channel.untilMs = Math.max(channel.untilMs, this.#nowMs + forMs);
    this.#timer ??= outsideRequests(() => this.#startTimer());
    const nodeKey = this.#primaryFor(channel);
    if (nodeKey === undefined || nodeKey === channel.nodeKey) return;
    this.#unsubscribe(name, channel);
    this.#subscribe(name, channel, nodeKey);
  }

  get #nowMs(): number {
    return this.#clock.now().monoMs;
  }

  /** The primary of the channel's slot; undefined while that server is left alone. */
  #primaryFor({ slot }: Channel): string | undefined {
    const nodeKey = this.#cluster.primaryOfSlot(slot);
    if (nodeKey === undefined || (this.#pausedUntilMs.get(nodeKey) ?? 0) > this.#nowMs) return undefined;
    return nodeKey;
  }

  #subscribe(name: string, channel: Channel, nodeKey: string): void {
    const connection = this.#connections.get(nodeKey) ?? outsideRequests(() => this.#connect(nodeKey));
    if (connection === undefined) return;
    channel.nodeKey = nodeKey;
    connection.shard.subscribe(name).catch((error: Error) => {
      // The connection was lost, or closed.
      if (this.#connections.get(nodeKey) !== connection) return;
      if (channel.nodeKey === nodeKey) channel.nodeKey = undefined;
      // After MOVED, the server still serves the other channels.
      if (this.#driver.codeOf(error) !== 'MOVED') this.#pausedUntilMs.set(nodeKey, this.#nowMs + pauseMs);
    });
  }

  #unsubscribe(name: string, channel: Channel): void {
    const { nodeKey } = channel;
    channel.nodeKey = undefined;
    if (nodeKey === undefined) return;
    // A server that no longer has the slot has ended the subscription.
    this.#connections
      .get(nodeKey)
      ?.shard.unsubscribe(name)
      .catch(() => undefined);
  }

  #drop(name: string, channel: Channel): void {
    // It may still be in force if it was forgotten together with another channel, whose slot moved.
    channel.nodeKey ??= this.#primaryFor(channel);
    this.#unsubscribe(name, channel);
    this.#channels.delete(name);
  }

  #connect(nodeKey: string): Connection | undefined {
    const shard = this.#cluster.openShard(nodeKey, {
      onMessage: (name, text) => {
        const message = readMessage(text);
        const channel = this.#channels.get(name);
        if (message && channel) this.#listeners.get(channel.process)?.(message);
      },
      // An active subscription can be repeated.
      onMoved: () => void this.#forget(nodeKey),
      onClosed: () => {
        if (this.#connections.get(nodeKey) === connection) this.#lost(nodeKey);
      },
    });
    const connection = shard && { shard, isPinged: false };
    if (connection !== undefined) this.#connections.set(nodeKey, connection);
    return connection;
  }

  /** Returns whether there was a channel. */
  #forget(nodeKey: string): boolean {
    let had = false;
    for (const channel of this.#channels.values()) {
      if (channel.nodeKey !== nodeKey) continue;
      channel.nodeKey = undefined;
      had = true;
    }
    return had;
  }

  /** Messages in flight are lost: every process polls, and the replies name the channels. */
  #lost(nodeKey: string): void {
    this.#connections.delete(nodeKey);
    this.#pausedUntilMs.set(nodeKey, this.#nowMs + pauseMs);
    if (this.#forget(nodeKey)) for (const listener of this.#listeners.values()) listener({ kind: 'resubscribed' });
  }

  #disconnect(nodeKey: string): void {
    const connection = this.#connections.get(nodeKey);
    this.#connections.delete(nodeKey);
    connection?.shard.close();
  }

  /** Runs while there are channels; cancelled by the last `close`. */
  #startTimer(): Timer {
    return this.#clock.after(checkEveryMs, () => {
      this.#check();
      this.#timer = this.#channels.size + this.#connections.size > 0 ? this.#startTimer() : undefined;
    });
  }

  /** Ends unneeded subscriptions, and connections without a reply since the last check: those are half-open. */
  #check(): void {
    for (const [nodeKey, untilMs] of this.#pausedUntilMs) {
      if (untilMs <= this.#nowMs) this.#pausedUntilMs.delete(nodeKey);
    }
    const used = new Set<string | undefined>();
    for (const [name, channel] of this.#channels) {
      if (channel.untilMs <= this.#nowMs) this.#drop(name, channel);
      else used.add(channel.nodeKey ?? this.#primaryFor(channel));
    }
    for (const [nodeKey, connection] of [...this.#connections]) {
      if (!used.has(nodeKey)) this.#disconnect(nodeKey);
      else if (connection.isPinged) connection.shard.close();
      else this.#ping(connection);
    }
  }

  #ping(connection: Connection): void {
    connection.isPinged = true;
    const onReply = (): void => {
      connection.isPinged = false;
    };
    // A failed ping is one without a reply.
    connection.shard.ping().then(onReply, () => undefined);
  }
}
