import { type ClusterOptions as AllClusterOptions, Cluster } from 'ioredis';
import type { RedisClient } from 'reenlock/redis';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { until } from '../until.ts';
import { disconnectTimeout, type OpenClient } from './client.ts';
import { type RedisCluster, startRedisCluster } from './cluster.ts';
import type { ClusterClientOptions, ClusterLibrary } from './cluster-clients.ts';
import type { RedisOptions } from './redis-stage.ts';
import type { RedisServer } from './server.ts';

export type ClusterOptions = Omit<AllClusterOptions, 'redisOptions'> & { redisOptions?: RedisOptions };

/** One cluster and one client for the tests of a `describe`, and an empty store for each. */
export class ClusterStage extends StoreStage {
  #cluster: RedisCluster | undefined;
  #client: Cluster | undefined;
  readonly #opened: OpenClient[] = [];

  get cluster(): RedisCluster {
    return this.#cluster as RedisCluster;
  }

  /** The application's client. */
  get client(): Cluster {
    return this.#client as Cluster;
  }

  /** Another client, with all its connections open. */
  async connect(options: ClusterOptions = {}): Promise<Cluster> {
    const client = new Cluster([...this.cluster.nodes], {
      ...options,
      redisOptions: { disconnectTimeout, ...options.redisOptions },
    });
    client.on('error', () => {});
    await connected(client);
    return client;
  }

  /** A client of any library, until the test is over. */
  async open(library: ClusterLibrary, options: Partial<ClusterClientOptions> = {}): Promise<RedisClient> {
    const opened = await library.connect({ nodes: this.cluster.nodes, ...options });
    this.#opened.push(opened);
    return opened.client;
  }

  /** A primary that does not have the slot of the key. */
  async elsewhere(key: string): Promise<RedisServer> {
    const { primary } = await this.cluster.serversOf(key);
    for (const server of this.cluster.servers) {
      if (server.port !== primary.port && (await this.isPrimary(server))) return server;
    }
    throw new Error('All slots are on one server');
  }

  async isPrimary(server: RedisServer): Promise<boolean> {
    return /^role:master\r$/m.test(await this.info(server, 'replication'));
  }

  async info(server: RedisServer, section: string): Promise<string> {
    return String(await this.cluster.call(server, 'INFO', section));
  }

  /** Waits until the replicas have all that was written. */
  async synced(primary: RedisServer): Promise<void> {
    const isSynced = async (): Promise<boolean> => {
      const info = await this.info(primary, 'replication');
      const [, sent] = /^master_repl_offset:(\d+)/m.exec(info) ?? [];
      return new RegExp(`^slave0:.*,offset=${sent},`, 'm').test(info);
    };
    await until(isSynced);
  }

  override async end(): Promise<void> {
    await super.end();
    for (const opened of this.#opened.splice(0)) await opened.close();
  }

  async start(): Promise<void> {
    this.#cluster = await startRedisCluster();
    this.#client = await this.connect();
  }

  async stop(): Promise<void> {
    this.client.disconnect();
    await this.cluster.stop();
  }
}

/** Call it in a `describe`. */
export function useCluster(): ClusterStage {
  const stage = new ClusterStage();
  beforeAll(() => stage.start(), 120_000);
  afterAll(() => stage.stop());
  beforeEach(async () => {
    await stage.cluster.callPrimaries('FLUSHALL');
    stage.store = new RedisStore({ client: stage.client });
  });
  afterEach(() => stage.end());
  return stage;
}

/** A client opens each of its connections when it first needs it. */
export async function connected(client: Cluster): Promise<void> {
  await client.ping();
  await Promise.all(client.nodes().map((node) => node.ping()));
}
