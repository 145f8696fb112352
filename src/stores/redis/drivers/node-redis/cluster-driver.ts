import { pause, systemClock } from '../../../../core/base/clock.ts';
import type { Link, LinkWatch } from '../../../../core/base/link.ts';
import { slotOf } from '../../cluster/slots.ts';
import { ClientLink } from '../client-link.ts';
import { watchConnection } from '../connection-times.ts';
import {
  NotSentError,
  type RedisClusterDriver,
  type RedisCommand,
  type RedisConnection,
  type RedisDriver,
  type RedisReplies,
  type RedisSender,
  type RedisShard,
  type RedisSubscriber,
  type ShardListener,
  type SubscriberListener,
} from '../driver.ts';
import { randomNode } from '../random-node.ts';
import {
  firstKeyOf,
  knownRefusal,
  type NodeRedisClient,
  NodeRedisSender,
  nodeRedisCodeOf,
  replyOptions,
  withPrefix,
} from './calls.ts';
import { ClusterNodes, type NodeRedisCluster } from './cluster-nodes.ts';
import { NodeRedisConnection } from './connection.ts';
import { NodeRedisShard } from './shard.ts';
import { NodeRedisSubscriber } from './subscriber.ts';

/** While a slot moves or its primary is gone, a call is tried again for a second and a half, as ioredis does. */
const maxTries = 16;
const pauseMs = 100;
/** The code of a refusal if no server may serve the key at the moment. The client itself follows MOVED and ASK. */
const momentary = new Set<string | undefined>(['TRYAGAIN', 'CLUSTERDOWN']);

/** A client of node-redis for a cluster. */
export class NodeRedisClusterDriver implements RedisDriver, RedisClusterDriver {
  readonly keyPrefix: string;
  readonly codeOf: (error: unknown) => string | undefined = nodeRedisCodeOf;
  readonly link: Link;
  readonly connection: LinkWatch;
  readonly #client: NodeRedisCluster;
  readonly #nodes: ClusterNodes;

  constructor(client: NodeRedisCluster) {
    const nodes = new ClusterNodes(client);
    this.keyPrefix = String(client._keyPrefix ?? '');
    this.link = new ClientLink(nodes.events, () => nodes.state, nodes.connectToAny);
    this.connection = watchConnection(this.link);
    this.#client = client;
    this.#nodes = nodes;
  }

  get cluster(): RedisClusterDriver {
    return this;
  }

  connectionEpoch(): unknown {
    return this.#nodes.connections.map((connection) => [connection, connection.socketEpoch]);
  }

  /**
   * A call is sent again only after a server has refused it, to the server that it named. If a connection is lost, all commands
   * that were written on it are rejected.
   */
  isSameEpoch(): boolean {
    return true;
  }

  /** The client would queue a call for a primary to which it has lost its connection, and would not look for another one. */
  async send(command: RedisCommand): Promise<unknown> {
    const words = withPrefix(command, this.keyPrefix);
    const key = firstKeyOf(command, words);
    let failure: unknown;
    for (let tries = 0; tries < maxTries; tries++) {
      if (tries > 0) await pause(systemClock, pauseMs);
      if (key !== undefined && !this.#isConnectedFor(key)) {
        failure = new NotSentError('The client has no connection to the primary of the key');
        continue;
      }
      try {
        return await this.#client.sendCommand(key, false, words, replyOptions).catch(knownRefusal);
      } catch (error) {
        if (!momentary.has(nodeRedisCodeOf(error))) throw error;
        failure = error;
      }
    }
    throw failure;
  }

  sendAll(commands: readonly RedisCommand[]): Promise<RedisReplies> {
    return Promise.allSettled(commands.map((command) => this.send(command)));
  }

  /** Every node forwards the messages of all others. When the connection is lost, the next one is to another node. */
  openSubscriber(listener: SubscriberListener): RedisSubscriber {
    const nodes = this.#nodes;
    if (nodes.connections.length === 0) throw new Error('The cluster has no node');
    const next = (last: NodeRedisClient | undefined): NodeRedisClient | undefined =>
      randomNode(nodes.connections.filter((connection) => connection !== last));
    return new NodeRedisSubscriber({ next, isCurrent: (origin) => !nodes.isGone(origin) }, listener);
  }

  createConnection(primary = ''): RedisConnection | undefined {
    const node = this.#nodes.connectionTo(primary);
    return node && new NodeRedisConnection(node, this.keyPrefix);
  }

  refresh(): Promise<void> {
    return this.#nodes.refresh();
  }

  primaries(): readonly string[] {
    return [...this.#nodes.primaries].sort();
  }

  primaryOf(key: string): string | undefined {
    return this.primaryOfSlot(slotOf(this.keyPrefix + key));
  }

  primaryOfSlot(slot: number): string | undefined {
    return this.#nodes.primaryOfSlot(slot);
  }

  node(primary: string): RedisSender | undefined {
    const node = this.#nodes.connectionTo(primary);
    return node && new NodeRedisSender(node, this.keyPrefix);
  }

  openShard(primary: string, listener: ShardListener): RedisShard | undefined {
    const node = this.#nodes.connectionTo(primary);
    return node && new NodeRedisShard(node, listener);
  }

  /** If there is no connection to the primary of a key, the client is made to look for one. */
  #isConnectedFor(key: string): boolean {
    const primary = this.#nodes.primaryOfSlot(slotOf(key));
    if (this.#nodes.connectionTo(primary) !== undefined) return true;
    this.#nodes.connect(primary);
    // The client also emits this error.
    this.refresh().catch(() => undefined);
    return false;
  }
}
