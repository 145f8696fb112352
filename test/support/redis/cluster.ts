import { until } from '../until.ts';
import { type Command, RedisAdmins } from './admins.ts';
import { type RedisServer, startRedis } from './server.ts';

/** A Redis Cluster of its own: three primaries with a replica each, nothing on disk but its own configuration, loopback only. */
export interface RedisCluster {
  /** First the three that began as primaries, then their replicas, in the same order. */
  readonly servers: readonly RedisServer[];
  /** What a client is given to start with. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  /** Sends a command to one server. */
  call(server: RedisServer, ...command: Command): Promise<unknown>;
  /** Sends a command to all primaries of now. */
  callPrimaries(...command: Command): Promise<void>;
  /** The primary that has the slot of a key, and its replica. */
  serversOf(key: string): Promise<{ readonly primary: RedisServer; readonly replica: RedisServer }>;
  /** Moves the slot of a key to the other server, key by key; `during` runs while both have a part of it. */
  moveSlot(key: string, to: RedisServer, during?: () => Promise<void>): Promise<void>;
  /** Makes a replica the primary of its slots, in agreement with the one that is, and waits until every server knows. */
  failOver(replica: RedisServer): Promise<void>;
  /**
   * Waits until the votes that a replica got lately no longer count. Redis 7.0 counts them again in an election within two node
   * timeouts: the replica then takes over with its former epoch, and no other server follows it.
   */
  electable(replica: RedisServer): Promise<void>;
  /** Waits until all servers run, say that all slots are served, and agree by whom. */
  settled(): Promise<void>;
  /** What each server says of all, to find out what went wrong. */
  state(): Promise<string>;
  stop(): Promise<void>;
}

const nodeTimeoutMs = 1_500;
const args = [
  ...[
    '--cluster-enabled',
    'yes',
    '--cluster-config-file',
    'nodes.conf',
    '--cluster-node-timeout',
    String(nodeTimeoutMs),
  ],
  ...['--cluster-allow-replica-migration', 'no', '--cluster-replica-validity-factor', '0'],
  ...['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'],
];
const slots = 16_384;
const failOverMs = 6_000;
/** Longer than a server takes to forget another one. */
const meetMs = 2_000;

/** Starts the servers, makes a cluster of them, and resolves when it serves every slot. */
export async function startRedisCluster(): Promise<RedisCluster> {
  const servers = await Promise.all(Array.from({ length: 6 }, () => startRedis({ args })));
  const cluster = new LocalCluster(servers);
  try {
    await cluster.create();
    return cluster;
  } catch (error) {
    await cluster.stop();
    throw error;
  }
}

class LocalCluster implements RedisCluster {
  readonly servers: readonly RedisServer[];
  readonly nodes: readonly { host: string; port: number }[];
  readonly #admins: RedisAdmins;
  /** When each server was last made a primary. */
  readonly #electedMs = new Map<RedisServer, number>();

  constructor(servers: readonly RedisServer[]) {
    this.servers = servers;
    this.nodes = servers.map(({ port }) => ({ host: '127.0.0.1', port }));
    this.#admins = new RedisAdmins(servers);
  }

  async create(): Promise<void> {
    for (const [index, server] of this.servers.entries())
      await this.call(server, 'CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
    await this.#meet();
    for (const index of [0, 1, 2]) {
      const [from, to] = [Math.ceil((slots * index) / 3), Math.ceil((slots * (index + 1)) / 3)];
      const range = Array.from({ length: to - from }, (_, i) => from + i);
      await this.call(this.servers[index]!, 'CLUSTER', 'ADDSLOTS', ...range);
      await this.call(this.servers[index + 3]!, 'CLUSTER', 'REPLICATE', await this.#idOf(this.servers[index]!));
    }
    await this.settled();
  }

  call(server: RedisServer, ...command: Command): Promise<unknown> {
    return this.#admins.call(server, ...command);
  }

  async callPrimaries(...command: Command): Promise<void> {
    const roles = await Promise.all(this.servers.map((server) => this.#roleOf(server)));
    await Promise.all(
      this.servers.filter((_, i) => roles[i] === 'master').map((server) => this.call(server, ...command)),
    );
  }

  async serversOf(key: string): Promise<{ primary: RedisServer; replica: RedisServer }> {
    const slot = Number(await this.call(this.#admins.anyReady(), 'CLUSTER', 'KEYSLOT', key));
    const table = await this.#table(this.#admins.anyReady());
    const primary = table.find((row) => row.isPrimary && row.ranges.some(([from, to]) => from <= slot && slot <= to))!;
    const replica = table.find((row) => row.primaryId === primary.id)!;
    return { primary: this.#byPort(primary.port), replica: this.#byPort(replica.port) };
  }

  async moveSlot(key: string, to: RedisServer, during: () => Promise<void> = async () => {}): Promise<void> {
    const slot = Number(await this.call(to, 'CLUSTER', 'KEYSLOT', key));
    const { primary: from } = await this.serversOf(key);
    const [fromId, toId] = [await this.#idOf(from), await this.#idOf(to)];
    await this.call(to, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId);
    await this.call(from, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId);
    await during();
    for (let keys = await this.#keysIn(from, slot); keys.length > 0; keys = await this.#keysIn(from, slot)) {
      await this.call(from, 'MIGRATE', '127.0.0.1', to.port, '', 0, 5_000, 'KEYS', ...keys);
    }
    for (const server of [to, from]) await this.call(server, 'CLUSTER', 'SETSLOT', slot, 'NODE', toId);
    await this.settled();
  }

  async electable(replica: RedisServer): Promise<void> {
    await until(
      () => performance.now() - (this.#electedMs.get(replica) ?? Number.NEGATIVE_INFINITY) > 2 * nodeTimeoutMs,
    );
  }

  async failOver(replica: RedisServer): Promise<void> {
    await this.electable(replica);
    await this.call(replica, 'CLUSTER', 'FAILOVER');
    let askedMs = performance.now();
    const id = await this.#idOf(replica);
    await this.#until(async (server) => {
      if ((await this.#table(server)).some((row) => row.id === id && row.isPrimary)) return true;
      // A replica gives up after five seconds, where the others were late with their votes, and tells nobody.
      if (server === replica && performance.now() - askedMs > failOverMs) {
        askedMs = performance.now();
        await this.call(replica, 'CLUSTER', 'FAILOVER');
      }
      return false;
    });
    this.#electedMs.set(replica, performance.now());
    await this.settled();
  }

  async settled(): Promise<void> {
    await this.#until(async (server) => {
      if (!/^cluster_state:ok\r$/m.test(String(await this.call(server, 'CLUSTER', 'INFO')))) return false;
      const replication = String(await this.call(server, 'INFO', 'replication'));
      if (/^role:slave\r$/m.test(replication) && !/^master_link_status:up\r$/m.test(replication)) return false;
      const primaries = (await this.#table(server)).filter((row) => row.primaryId === '-');
      // A primary that was followed has no slots until it is known to be a replica.
      if (primaries.some((row) => row.ranges.length === 0)) return false;
      // Of two primaries with one epoch, one will take a greater epoch, and with it all slots that it has at that moment:
      // also a slot that is just moved away from it.
      if (new Set(primaries.map((row) => row.epoch)).size < primaries.length) return false;
      return (await this.#owners(server)) === (await this.#owners(this.servers[0]!));
    });
  }

  stop(): Promise<void> {
    return this.#admins.stop();
  }

  /** Makes all servers known to each other. A server forgets one that was late with its part of it, and tells nobody. */
  async #meet(): Promise<void> {
    const askedMs = new Map<RedisServer, number>();
    await this.#until(async (server) => {
      if ((await this.#table(server)).length === this.servers.length) return true;
      if (performance.now() - (askedMs.get(server) ?? Number.NEGATIVE_INFINITY) > meetMs) {
        askedMs.set(server, performance.now());
        for (const { port } of this.servers) await this.call(server, 'CLUSTER', 'MEET', '127.0.0.1', port);
      }
      return false;
    });
  }

  /** Waits until something holds of all servers; one that is down has yet to come back. */
  async #until(holds: (server: RedisServer) => Promise<boolean>): Promise<void> {
    const look = (): Promise<boolean[]> => Promise.all(this.servers.map((server) => holds(server).catch(() => false)));
    const describe = async (): Promise<string> => `${holds}, and\n${await this.state()}`;
    await until(look, (seen) => seen.every(Boolean), describe);
  }

  async state(): Promise<string> {
    const says = async (server: RedisServer): Promise<string> => {
      const answers = await Promise.all([
        this.call(server, 'CLUSTER', 'NODES'),
        this.call(server, 'CLUSTER', 'INFO'),
        this.call(server, 'INFO', 'replication'),
      ]);
      return `${server.port} says\n${answers.join('\n')}`;
    };
    const all = this.servers.map((server) => says(server).catch((error) => `${server.port} says ${error}`));
    return (await Promise.all(all)).join('\n');
  }

  #byPort(port: number): RedisServer {
    return this.servers.find((server) => server.port === port)!;
  }

  async #idOf(server: RedisServer): Promise<string> {
    return String(await this.call(server, 'CLUSTER', 'MYID'));
  }

  async #roleOf(server: RedisServer): Promise<string> {
    return String(((await this.call(server, 'ROLE').catch(() => ['down'])) as unknown[])[0]);
  }

  async #keysIn(server: RedisServer, slot: number): Promise<string[]> {
    return (await this.call(server, 'CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[];
  }

  /** Who serves what, as a server sees it: to be compared. */
  async #owners(server: RedisServer): Promise<string> {
    const table = await this.#table(server);
    const rows = table.map(({ id, primaryId, epoch, ranges }) => `${id} ${primaryId} ${epoch} ${ranges.join(' ')}`);
    return rows.sort().join('\n');
  }

  /** The servers, as one of them sees it. */
  async #table(server: RedisServer): Promise<Row[]> {
    const text = String(await this.call(server, 'CLUSTER', 'NODES'));
    return text.trim().split('\n').map(readRow);
  }
}

interface Row {
  readonly id: string;
  readonly port: number;
  readonly isPrimary: boolean;
  readonly primaryId: string;
  readonly epoch: string;
  readonly ranges: readonly (readonly [number, number])[];
}

/** "<id> <host>:<port>@<bus port> <flags> <primary's id or -> <ping> <pong> <epoch> <link> <slots …>" */
function readRow(line: string): Row {
  const [id = '', address = '', flags = '', primaryId = '', , , epoch = '', , ...ranges] = line.split(' ');
  return {
    id,
    port: Number(/:(\d+)/.exec(address)?.[1]),
    isPrimary: flags.includes('master') && !flags.includes('fail'),
    primaryId,
    epoch,
    // A slot on its way is in brackets.
    ranges: ranges
      .filter((range) => !range.startsWith('['))
      .map((range) => range.split('-').map(Number))
      .map(([from = 0, to = from]) => [from, to] as const),
  };
}
