import type { Cluster, Redis, RedisOptions } from 'ioredis';

/** A client of one primary (standalone or behind Sentinel), or of a cluster. */
export type RedisOrCluster = Redis | Cluster;

/** Whether the client is that of a cluster. */
export function isCluster(client: RedisOrCluster): client is Cluster {
  return client.isCluster;
}

/** Identifies the connections that the calls of a client travel on. */
export interface RedisConnections {
  /** What the connections are now; undefined if there is none yet. */
  connectionEpoch(): unknown;
  /**
   * Whether the connections are still the same: none was lost and none was opened in between. Every server that got a call
   * in the meantime has replied to it, redirections included, and no copy of the call is on its way. This is not known of
   * a call that had to wait for the first connection: that may have been lost and the call sent again on the next one.
   */
  isSameEpoch(epoch: unknown): boolean;
}

/** The connections of a client: one at a time for one server, one to each node in a cluster. */
export function connectionsOf(client: RedisOrCluster): RedisConnections {
  if (!isCluster(client)) {
    return { connectionEpoch: () => client.stream, isSameEpoch: (epoch) => client.stream === epoch };
  }
  const connectionEpoch = (): readonly unknown[] => {
    const list: unknown[] = [];
    // The node as well: the replacement of a node has no stream at first, as the former node had none.
    for (const node of client.nodes()) list.push(node, node.stream);
    return list;
  };
  const isSameEpoch = (epoch: unknown): boolean => {
    const before = epoch as readonly unknown[];
    const current = connectionEpoch();
    return current.length === before.length && current.every((part, i) => part === before[i]);
  };
  return { connectionEpoch, isSameEpoch };
}

/** The options of a connection for subscriptions, in place of those of the client that it duplicates. */
export const subscriberOptions: RedisOptions = {
  // The scripts name channels in full: no key prefix may be put before them.
  keyPrefix: '',
  maxRetriesPerRequest: null,
  // If the connection closes meanwhile, ioredis would leave the rejection unhandled, which ends the process.
  autoResubscribe: false,
  // For the same reason no other database is selected. Channels belong to none.
  db: 0,
  lazyConnect: false,
  enableOfflineQueue: true,
  // A ping that timed out would count as answered.
  commandTimeout: undefined,
};

/** Waits until the client knows a node: a lazy client knows none before its first command. */
export async function awaitNodes(cluster: Cluster): Promise<void> {
  if (cluster.nodes().length === 0) await cluster.ping();
}

/**
 * Opens a connection to one node of a cluster: every node passes on what is published on any other. When the connection is
 * lost, it goes to another node. `chance` returns a number in [0, 1). Throws if the client knows no node.
 */
export function connectToNode(cluster: Cluster, options: RedisOptions, chance: () => number): Redis {
  const first = randomNode(cluster.nodes(), chance);
  if (first === undefined) throw new Error('The cluster has no node');
  const connection: Redis = first.duplicate({
    ...options,
    readOnly: false,
    retryStrategy: (attempt: number) => {
      const others = cluster.nodes().filter((node) => !isSameNode(node, connection));
      const next = randomNode(others, chance);
      // ioredis reads the options at each connect.
      if (next !== undefined) Object.assign(connection.options, addressOf(next));
      return options.retryStrategy?.(attempt);
    },
  });
  return connection;
}

/** Whether the client still counts the node as one of the cluster. A node that left gets no messages, but answers pings. */
export function isMember(cluster: Cluster, connection: Redis): boolean {
  const nodes = cluster.nodes();
  return nodes.length === 0 || nodes.some((node) => isSameNode(node, connection));
}

/** The client's own connection to the primary of that name, as in `cluster.slots`. */
export function primaryOf(cluster: Cluster, nodeKey: string): Redis | undefined {
  return cluster.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === nodeKey);
}

/** The name of the primary that has a key, as far as the client knows. The client's key prefix is added to the key. */
export function nodeKeyOf(cluster: Cluster, key: string): string | undefined {
  return cluster.slots[slotOf(`${cluster.options.keyPrefix ?? ''}${key}`)]?.[0];
}

/** The hash slot of a key: CRC16 (XMODEM) of its hash tag, or else of the whole key. ioredis does not export its own. */
export function slotOf(key: string): number {
  const tag = /^[^{]*\{([^}]+)\}/.exec(key)?.[1] ?? key;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  }
  return crc & 0x3fff;
}

function isSameNode(one: Redis, other: Redis): boolean {
  return one.options.host === other.options.host && one.options.port === other.options.port;
}

function addressOf({ options: { host, port, username, password, tls } }: Redis): RedisOptions {
  return { host, port, username, password, tls } as RedisOptions;
}

function randomNode(nodes: readonly Redis[], chance: () => number): Redis | undefined {
  return nodes[Math.floor(chance() * nodes.length)];
}
