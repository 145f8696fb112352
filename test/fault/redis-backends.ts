import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { TcpProxy } from '../support/processes/tcp-proxy.ts';
import { disconnectTimeout } from '../support/redis/client.ts';
import { startRedisCluster } from '../support/redis/cluster.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { type Backend, connectionFaults, once, type Random, serverFaults } from './backend.ts';
import type { StoreSetup } from './processes/open-store.ts';

const durable = ['--appendonly', 'yes', '--appendfsync', 'always'];
/** Longer than any lease of the soak. */
const maxLeaseMs = 2_000;

function adminOf({ port }: RedisServer): Redis {
  const admin = new Redis(port, { retryStrategy: () => 10, maxRetriesPerRequest: null, disconnectTimeout });
  // Its server is killed, and the test knows it.
  admin.on('error', () => {});
  return admin;
}

export async function startRedisBackend(random: Random): Promise<Backend> {
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
export async function startClusterBackend(random: Random): Promise<Backend> {
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
export async function startQuorumBackend(random: Random): Promise<Backend> {
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

export async function startRedisCasBackend(random: Random): Promise<Backend> {
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
