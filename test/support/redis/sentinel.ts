import { until } from '../until.ts';
import { type Command, RedisAdmins } from './admins.ts';
import { type RedisServer, startRedis } from './server.ts';

/** One primary with two replicas, and three Sentinels that watch it; nothing on disk but their configuration, loopback only. */
export interface SentinelGroup {
  /** The one that began as the primary comes first. */
  readonly servers: readonly RedisServer[];
  /** What a client is given to start with, beside the name. */
  readonly sentinels: readonly { readonly host: string; readonly port: number }[];
  readonly name: string;
  /** Sends a command to one server. */
  call(server: RedisServer, ...command: Command): Promise<unknown>;
  /** Who is the primary, as the Sentinels say. */
  primary(): Promise<RedisServer>;
  /** Waits until another one than this is the primary, as all Sentinels say. */
  failedOver(from: RedisServer): Promise<RedisServer>;
  /** Waits until all servers run, and the replicas follow the primary of now. */
  settled(): Promise<void>;
  stop(): Promise<void>;
}

const name = 'main';
const args = ['--repl-diskless-sync-delay', '0', '--repl-ping-replica-period', '1'];

/** How often Sentinels look, ask and tell; and a busy machine is not taken for a clock that jumps. */
const pace = ['INFO-PERIOD', 100, 'ASK-PERIOD', 100, 'PUBLISH-PERIOD', 100, 'TILT-TRIGGER', 60_000];

/** Starts the servers and the Sentinels, and resolves when all know each other. */
export async function startSentinelGroup(): Promise<SentinelGroup> {
  const primary = await startRedis({ args });
  const replicate = [...args, '--replicaof', `127.0.0.1 ${primary.port}`];
  const replicas = await Promise.all([1, 2].map(() => startRedis({ args: replicate })));
  // All vote, but only one ever finds enough others to begin a failover: where two stand for election, each waits for long.
  const quorums = [2, 4, 4];
  const sentinels = await Promise.all(
    quorums.map((quorum) => startRedis({ sentinel: configuration(primary.port, quorum) })),
  );
  const group = new LocalGroup([primary, ...replicas], sentinels);
  try {
    await group.paced();
    await group.acquainted();
    return group;
  } catch (error) {
    await group.stop();
    throw error;
  }
}

function configuration(primaryPort: number, quorum: number): string {
  return [
    `sentinel monitor ${name} 127.0.0.1 ${primaryPort} ${quorum}`,
    `sentinel down-after-milliseconds ${name} 1000`,
    `sentinel failover-timeout ${name} 5000`,
    `sentinel parallel-syncs ${name} 2\n`,
  ].join('\n');
}

class LocalGroup implements SentinelGroup {
  readonly name = name;
  readonly servers: readonly RedisServer[];
  readonly sentinels: readonly { host: string; port: number }[];
  readonly #watchers: readonly RedisServer[];
  readonly #admins: RedisAdmins;

  constructor(servers: readonly RedisServer[], watchers: readonly RedisServer[]) {
    this.servers = servers;
    this.#watchers = watchers;
    this.sentinels = watchers.map(({ port }) => ({ host: '127.0.0.1', port }));
    this.#admins = new RedisAdmins([...servers, ...watchers]);
  }

  call(server: RedisServer, ...command: Command): Promise<unknown> {
    return this.#admins.call(server, ...command);
  }

  async primary(): Promise<RedisServer> {
    return this.#primaryBy(this.#watchers[0]!);
  }

  async failedOver(from: RedisServer): Promise<RedisServer> {
    const isOther = async (watcher: RedisServer): Promise<boolean> => (await this.#primaryBy(watcher)) !== from;
    await untilAll(async () => (await Promise.all(this.#watchers.map(isOther))).every(Boolean));
    return this.primary();
  }

  async settled(): Promise<void> {
    await untilAll(async () => {
      const primary = await this.primary();
      const infos = await Promise.all(this.servers.map((server) => this.#replication(server)));
      return infos.every((info, i) =>
        this.servers[i] === primary
          ? /^role:master\r$[\s\S]*^connected_slaves:2\r$/m.test(info)
          : info.includes(`master_port:${primary.port}\r`) && /^master_link_status:up\r$/m.test(info),
      );
    });
  }

  async paced(): Promise<void> {
    await Promise.all(this.#watchers.map((watcher) => this.call(watcher, 'SENTINEL', 'DEBUG', ...pace)));
  }

  async acquainted(): Promise<void> {
    await this.settled();
    await untilAll(async () => {
      const lists = await Promise.all(
        this.#watchers.flatMap((watcher) =>
          ['REPLICAS', 'SENTINELS'].map((what) => this.call(watcher, 'SENTINEL', what, name) as Promise<unknown[]>),
        ),
      );
      return lists.every(({ length }) => length === 2);
    });
  }

  stop(): Promise<void> {
    return this.#admins.stop();
  }

  async #primaryBy(watcher: RedisServer): Promise<RedisServer> {
    const [, port] = (await this.call(watcher, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)) as [string, string];
    return this.servers.find((server) => server.port === Number(port))!;
  }

  async #replication(server: RedisServer): Promise<string> {
    return String(await this.call(server, 'INFO', 'replication'));
  }
}

/** As `until`; a server that is down has yet to come back. */
async function untilAll(holds: () => Promise<boolean>): Promise<void> {
  await until(
    () => holds().catch(() => false),
    Boolean,
    () => `${holds}`,
  );
}
