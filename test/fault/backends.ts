import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { postgresCasTable } from '../../src/stores/redis.ts';
import { startPostgres } from '../support/postgres/server.ts';
import { TcpProxy } from '../support/processes/tcp-proxy.ts';
import { disconnectTimeout } from '../support/redis/client.ts';
import { startRedisCluster } from '../support/redis/cluster.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import type { StoreSetup } from './processes/open-store.ts';

/** Something that goes wrong. Two of one kind never go wrong at once. */
export interface Fault {
  readonly kind: 'server' | 'connection' | 'data' | 'process';
  readonly name: string;
  /** Resolves with what ends it, if it does not end by itself. */
  begin(): Promise<(() => unknown) | undefined>;
}

/** The servers of a store, what can go wrong with them, and how processes come to them. */
export interface Backend {
  /** For client processes: through proxies, where there are any. */
  readonly setup: StoreSetup;
  /** For the test itself, past the proxies. */
  readonly direct: StoreSetup;
  readonly faults: readonly Fault[];
  stop(): Promise<void>;
}

/** A number in [0, 1). */
export type Random = () => number;

/** By name, how to start each. */
export const backends: Readonly<Record<string, (random: Random) => Promise<Backend>>> = {
  redis: startRedisBackend,
  cluster: startClusterBackend,
  quorum: startQuorumBackend,
  'redis-cas': startCasBackend,
  postgres: startPostgresBackend,
};

const durable = ['--appendonly', 'yes', '--appendfsync', 'always'];
/** Longer than any lease of the soak. */
const maxLeaseMs = 2_000;

function adminOf({ port }: RedisServer): Redis {
  const admin = new Redis(port, { retryStrategy: () => 10, maxRetriesPerRequest: null, disconnectTimeout });
  // Its server is killed, and the test knows it.
  admin.on('error', () => {});
  return admin;
}

/** What can go wrong with connections that go through a proxy. */
function connectionFaults(proxy: TcpProxy, random: Random, of = ''): Fault[] {
  const fault = (name: string, spoil: () => unknown, end: () => unknown = () => {}): Fault => ({
    kind: 'connection',
    name: `${name}${of}`,
    begin: async () => {
      spoil();
      return end;
    },
  });
  // Those that were half-open stay so.
  const heal = (): void => {
    proxy.heal();
    proxy.cut();
  };
  return [
    fault('connections reset', () => proxy.cut()),
    fault('connections refused', () => proxy.cutOff(), heal),
    fault('connections half-open', () => proxy.halfOpen(), heal),
    fault('connections slow', () => proxy.delay(200, random), heal),
  ];
}

function serverFaults(server: RedisServer, of = ''): Fault[] {
  return [
    {
      kind: 'server',
      name: `a server stopped${of}`,
      begin: async () => {
        server.pause();
        return () => server.resume();
      },
    },
    {
      kind: 'server',
      name: `a server killed, and started later${of}`,
      begin: async () => {
        await server.kill();
        return () => server.restart();
      },
    },
  ];
}

/** What happens to a server at once. */
function once(kind: Fault['kind'], name: string, happen: () => unknown): Fault {
  return {
    kind,
    name,
    begin: async () => {
      await happen();
      return undefined;
    },
  };
}

async function startRedisBackend(random: Random): Promise<Backend> {
  const server = await startRedis({ args: durable });
  const [admin, proxy] = [adminOf(server), await TcpProxy.start(server.port)];
  /** What waits, and what is known of processes. Not readers' holds and their counts: without a hold there is no exclusion. */
  const loseFromQueues = async (chance: () => () => boolean): Promise<void> => {
    for (const name of await admin.keys('*:queue')) {
      const isLost = chance();
      const members = await admin.zrange(name, '0', '-1');
      const lost = members.filter((member) => !/^:[hr]/.test(member) && isLost());
      if (lost.length > 0) await admin.zrem(name, ...lost);
    }
  };
  const half = (): boolean => random() < 0.5;
  const allOrNone = (): (() => boolean) => {
    const isLost = half();
    return () => isLost;
  };
  const lose = (): void => void proxy.loseReply(([name = '']) => /^eval/i.test(name));
  return {
    setup: { kind: 'redis', port: proxy.port },
    direct: { kind: 'redis', port: server.port },
    faults: [
      ...connectionFaults(proxy, random),
      ...serverFaults(server),
      once('connection', 'a reply lost', lose),
      once('data', 'messages cut', () => admin.client('KILL', 'TYPE', 'PUBSUB')),
      once('data', 'scripts forgotten', () => admin.script('FLUSH')),
      once('data', 'queues lost', () => loseFromQueues(allOrNone)),
      once('data', 'queues lost in part', () => loseFromQueues(() => half)),
    ],
    async stop() {
      admin.disconnect();
      await proxy.stop();
      await server.stop();
    },
  };
}

/** Servers fail over on purpose only: what one has not yet sent to its replica would be lost. */
async function startClusterBackend(random: Random): Promise<Backend> {
  const cluster = await startRedisCluster();
  const ports = cluster.servers.map(({ port }) => port);
  const onEach = (...command: [string, ...string[]]) =>
    Promise.all(cluster.servers.map((s) => cluster.call(s, ...command)));
  const record = (): string => `reenlock:{order:${1 + Math.floor(random() * 3)}}:lock`;
  const shortMs = 700;
  return {
    setup: { kind: 'cluster', ports },
    direct: { kind: 'cluster', ports },
    faults: [
      once('connection', 'connections reset', () => onEach('CLIENT', 'KILL', 'TYPE', 'normal')),
      once('connection', 'messages cut', () => onEach('CLIENT', 'KILL', 'TYPE', 'pubsub')),
      once('data', 'scripts forgotten', () => onEach('SCRIPT', 'FLUSH')),
      once('server', 'a slot moved', async () => {
        const key = record();
        const { primary } = await cluster.serversOf(key);
        const tables = await Promise.all([1, 2, 3].map((n) => cluster.serversOf(`reenlock:{order:${n}}:lock`)));
        const other = tables.find((one) => one.primary.port !== primary.port)?.primary;
        if (other !== undefined) await cluster.moveSlot(key, other);
      }),
      once('server', 'a primary replaced', async () => cluster.failOver((await cluster.serversOf(record())).replica)),
      once('server', 'a primary stopped for a moment', async () => {
        const { primary } = await cluster.serversOf(record());
        primary.pause();
        await sleep(shortMs * random());
        primary.resume();
      }),
    ],
    stop: () => cluster.stop(),
  };
}

/** Nodes that lose all they know at each start, one at a time. */
async function startQuorumBackend(random: Random): Promise<Backend> {
  const servers = await Promise.all([1, 2, 3].map(() => startRedis()));
  const proxies = await Promise.all(servers.map(({ port }) => TcpProxy.start(port)));
  const setup = (nodes: readonly { readonly port: number }[]): StoreSetup => ({
    kind: 'quorum',
    ports: nodes.map(({ port }) => port),
    maxLeaseMs,
  });
  return {
    setup: setup(proxies),
    direct: setup(servers),
    faults: servers.flatMap((server, n) => [
      ...connectionFaults(proxies[n] as TcpProxy, random, ' of a node'),
      ...serverFaults(server, ' of a node'),
    ]),
    async stop() {
      for (const proxy of proxies) await proxy.stop();
      for (const server of servers) await server.stop();
    },
  };
}

async function startCasBackend(random: Random): Promise<Backend> {
  const login = ['--user', 'plain', 'on', 'nopass', '~*', '&*', '+@all', '-@scripting'];
  const server = await startRedis({ args: [...durable, ...login] });
  const proxy = await TcpProxy.start(server.port);
  const lose = (): void => void proxy.loseReply(([name = '']) => /^exec$/i.test(name));
  return {
    setup: { kind: 'redis-cas', port: proxy.port },
    direct: { kind: 'redis-cas', port: server.port },
    faults: [...connectionFaults(proxy, random), ...serverFaults(server), once('connection', 'a reply lost', lose)],
    async stop() {
      await proxy.stop();
      await server.stop();
    },
  };
}

async function startPostgresBackend(random: Random): Promise<Backend> {
  const server = await startPostgres({ keepsCommits: true });
  const proxy = await TcpProxy.start(server.port, 'any');
  const query = async <T>(run: (client: Client) => Promise<T>): Promise<T> => {
    const client = new Client({ connectionString: server.url });
    client.on('error', () => {});
    await client.connect();
    return run(client);
  };
  await query(async (client) => {
    await client.query(postgresCasTable());
    await client.end();
  });
  return {
    setup: { kind: 'postgres', port: proxy.port },
    direct: { kind: 'postgres', port: server.port },
    faults: [
      ...connectionFaults(proxy, random),
      {
        kind: 'server',
        name: 'the server killed, and started later',
        begin: async () => {
          await server.kill();
          return () => server.restart();
        },
      },
      {
        kind: 'server',
        name: 'all rows locked by somebody else',
        begin: () =>
          query(async (client) => {
            await client.query('BEGIN');
            await client.query('SELECT FROM reenlock_locks FOR UPDATE');
            return () => client.end();
          }),
      },
    ],
    async stop() {
      await proxy.stop();
      await server.stop();
    },
  };
}
