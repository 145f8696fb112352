import type { Cluster, Redis, RedisOptions } from 'ioredis';
import type { Link, LinkWatch } from '../../../../core/base/link.ts';
import { slotOf } from '../../cluster/slots.ts';
import { retryMs, watchConnection } from '../connection-times.ts';
import type {
  RedisClusterDriver,
  RedisCommand,
  RedisConnection,
  RedisDriver,
  RedisSender,
  RedisShard,
  RedisSubscriber,
  ShardListener,
  SubscriberListener,
} from '../driver.ts';
import { randomNode } from '../random-node.ts';
import { IoredisSender, ioredisCodeOf, ioredisLink } from './calls.ts';
import { IoredisConnection } from './connection.ts';
import { sendScriptCall } from './script-call.ts';
import { IoredisShard } from './shard.ts';
import { IoredisSubscriber, subscriberOptions } from './subscriber.ts';
import { WriteBatcher } from './write-batches.ts';

/** A client of ioredis for a cluster. */
export class IoredisClusterDriver extends IoredisSender<Cluster> implements RedisDriver, RedisClusterDriver {
  readonly codeOf: (error: unknown) => string | undefined = ioredisCodeOf;
  readonly link: Link;
  readonly connection: LinkWatch;
  readonly #batchers = new WeakMap<Redis, WriteBatcher>();

  constructor(client: Cluster) {
    super(client);
    this.link = ioredisLink(client);
    this.connection = watchConnection(this.link);
  }

  get cluster(): RedisClusterDriver {
    return this;
  }

  connectionEpoch(): readonly unknown[] {
    const list: unknown[] = [];
    // The node as well: the replacement of a node has no stream at first, as the former node had none.
    for (const node of this.client.nodes()) list.push(node, node.stream);
    return list;
  }

  isSameEpoch(epoch: unknown): boolean {
    const before = epoch as readonly unknown[];
    const current = this.connectionEpoch();
    return current.length === before.length && current.every((part, i) => part === before[i]);
  }

  /** Calls of one round to one server are written together. */
  sendScript(command: RedisCommand): Promise<unknown> {
    const slot = slotOf(`${this.keyPrefix}${command[3]}`);
    const node = this.#node(this.primaryOfSlot(slot));
    if (node !== undefined) this.#batcherOf(node).beforeCall();
    return sendScriptCall(this.client, command, slot);
  }

  /** Every node forwards the messages of all others. When the connection is lost, the next one is to another node. */
  openSubscriber(listener: SubscriberListener): RedisSubscriber {
    const first = randomNode(this.client.nodes());
    if (first === undefined) throw new Error('The cluster has no node');
    const connection: Redis = first.duplicate({
      ...subscriberOptions,
      readOnly: false,
      retryStrategy: (attempt: number) => {
        const others = this.client.nodes().filter((node) => !isSameNode(node, connection));
        const next = randomNode(others);
        // ioredis reads the options at each connect.
        if (next !== undefined) Object.assign(connection.options, addressOf(next));
        return retryMs(attempt);
      },
    });
    return new IoredisSubscriber(connection, listener, (own) => {
      const nodes = this.client.nodes();
      return nodes.length > 0 && !nodes.some((node) => isSameNode(node, own));
    });
  }

  createConnection(primary = ''): RedisConnection | undefined {
    const node = this.#node(primary);
    return node && new IoredisConnection(node, { keyPrefix: this.keyPrefix, readOnly: false });
  }

  refresh(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.client.refreshSlotsCache((error) => (error ? reject(error) : resolve()));
    });
  }

  primaries(): readonly string[] {
    return [...new Set(this.client.slots.flatMap(([primary]) => primary ?? []))].sort();
  }

  primaryOf(key: string): string | undefined {
    return this.primaryOfSlot(slotOf(this.keyPrefix + key));
  }

  primaryOfSlot(slot: number): string | undefined {
    return this.client.slots[slot]?.[0];
  }

  node(primary: string): RedisSender | undefined {
    const node = this.#node(primary);
    return node && new IoredisSender(node);
  }

  openShard(primary: string, listener: ShardListener): RedisShard | undefined {
    const node = this.#node(primary);
    return node && new IoredisShard(node, listener);
  }

  #batcherOf(node: Redis): WriteBatcher {
    let batcher = this.#batchers.get(node);
    if (batcher === undefined) {
      batcher = new WriteBatcher(node);
      this.#batchers.set(node, batcher);
    }
    return batcher;
  }

  #node(primary: string | undefined): Redis | undefined {
    return this.client.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === primary);
  }
}

function isSameNode(one: Redis, other: Redis): boolean {
  return one.options.host === other.options.host && one.options.port === other.options.port;
}

function addressOf({ options: { host, port, username, password, tls } }: Redis): RedisOptions {
  return { host, port, username, password, tls } as RedisOptions;
}
