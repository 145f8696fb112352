import type { Cluster, Redis, RedisOptions } from 'ioredis';

/** A client of one primary (standalone or behind Sentinel), or of a cluster. */
export type RedisOrCluster = Redis | Cluster;

/** Tells the two apart. */
export function isCluster(client: RedisOrCluster): client is Cluster {
  return client.isCluster;
}

/** Waits until the client knows a node: a lazy one knows none before its first command. */
export async function awaitNodes(cluster: Cluster): Promise<void> {
  if (cluster.nodes().length === 0) await cluster.ping();
}

/**
 * Opens a connection to one node of a cluster: all nodes pass on what is published on any of them. Each time when it is
 * lost it goes to another node, with what it had subscribed to. `chance` answers a number in [0, 1). Throws where the
 * client knows no node.
 */
export function connectToNode(cluster: Cluster, options: RedisOptions, chance: () => number): Redis {
  const first = anyOf(cluster.nodes(), chance);
  if (first === undefined) throw new Error('The cluster has no node');
  const connection: Redis = first.duplicate({
    ...options,
    readOnly: false,
    retryStrategy: (attempt: number) => {
      const others = cluster.nodes().filter((node) => !isSameNode(node, connection));
      const next = anyOf(others, chance);
      // Read by ioredis at each connect.
      if (next !== undefined) Object.assign(connection.options, addressOf(next));
      return options.retryStrategy?.(attempt);
    },
  });
  return connection;
}

/** Whether the client still counts the node among those of the cluster; one that left it hears nothing, and answers pings. */
export function isMember(cluster: Cluster, connection: Redis): boolean {
  const nodes = cluster.nodes();
  return nodes.length === 0 || nodes.some((node) => isSameNode(node, connection));
}

/** The client's own connection to the primary of that name, as `cluster.slots` has it. */
export function primaryOf(cluster: Cluster, nodeKey: string): Redis | undefined {
  return cluster.nodes('master').find(({ options: { host, port } }) => `${host}:${port}` === nodeKey);
}

/** The name of the primary that has a key, as far as the client knows, which puts its own prefix before it. */
export function nodeKeyOf(cluster: Cluster, key: string): string | undefined {
  return cluster.slots[slotOf(`${cluster.options.keyPrefix ?? ''}${key}`)]?.[0];
}

/** The hash slot of a key: CRC16 (XMODEM) of its tag, or of all of it. ioredis has it, but tells nobody. */
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

function anyOf(nodes: readonly Redis[], chance: () => number): Redis | undefined {
  return nodes[Math.floor(chance() * nodes.length)];
}
