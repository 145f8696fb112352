import { once } from 'node:events';
import { createRequire } from 'node:module';
import { Cluster, Redis } from 'ioredis';
import { createPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { MemoryStore } from '../../../src/core/memory/memory-store.ts';
import type { LockStore } from '../../../src/core/model/store.ts';
import { CasStore } from '../../../src/stores/cas/cas-store.ts';
import { PostgresCas } from '../../../src/stores/cas/postgres-cas.ts';
import { RedisCas } from '../../../src/stores/cas/redis-cas.ts';
import { MySqlCas } from '../../../src/stores/mysql/mysql-cas.ts';
import { PostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { QuorumStore } from '../../../src/stores/quorum/quorum-store.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { disconnectTimeout } from '../../support/redis/client.ts';

/** Where a process of the fault tests keeps its locks: a store, and the loopback ports of its servers. */
export type StoreSetup =
  | { readonly kind: 'memory' }
  /** The newest ioredis is the client, unless a library of `clientLibraries` is named. */
  | { readonly kind: 'redis'; readonly port: number; readonly username?: string; readonly library?: string }
  | { readonly kind: 'cluster'; readonly ports: readonly number[] }
  | { readonly kind: 'quorum'; readonly ports: readonly number[]; readonly maxLeaseMs: number }
  | { readonly kind: 'redis-cas'; readonly port: number }
  | { readonly kind: 'postgres'; readonly port: number }
  | { readonly kind: 'postgres-cas'; readonly port: number }
  | { readonly kind: 'mysql-cas'; readonly port: number };

/** A store with the connections of one process. */
export interface OpenStore {
  readonly store: LockStore;
  /** Resolves once its servers can be reached. */
  readonly ready: Promise<unknown>;
  close(): Promise<void>;
}

const patient = { retryStrategy: () => 20, maxRetriesPerRequest: null, disconnectTimeout } as const;

/** Connects to a store; what goes wrong later is told by its calls alone. */
export function openStore(setup: StoreSetup): OpenStore {
  if (setup.kind === 'memory') return { store: new MemoryStore(), ready: Promise.resolve(), close: async () => {} };
  if (setup.kind === 'postgres')
    return openPostgres(setup.port, (pool) => new PostgresStore({ pool, timeoutMs: 1_000 }));
  if (setup.kind === 'postgres-cas')
    return openPostgres(setup.port, (pool) => new CasStore({ adapter: new PostgresCas({ pool }) }));
  if (setup.kind === 'mysql-cas') return openMySql(setup.port);
  if (setup.kind === 'cluster') return openCluster(setup.ports);
  if (setup.kind === 'quorum') return openQuorum(setup.ports, setup.maxLeaseMs);
  if (setup.kind === 'redis' && setup.library !== undefined) return openWith(setup.library, setup.port);
  const login = setup.kind === 'redis-cas' ? 'plain' : setup.username;
  const client = connect(setup.port, login);
  const ready = once(client, 'ready');
  const disconnect = async (): Promise<void> => client.disconnect();
  if (setup.kind === 'redis') return { store: new RedisStore({ client }), ready, close: disconnect };
  const adapter = new RedisCas({ client });
  const close = async (): Promise<void> => {
    adapter.close();
    await disconnect();
  };
  return { store: new CasStore({ adapter }), ready, close };
}

/** The libraries take long to load: only a process that needs them does so. */
function openWith(name: string, port: number): OpenStore {
  const load = createRequire(__filename);
  const { clientLibraries }: typeof import('../../support/redis/clients.ts') = load('../../support/redis/clients.ts');
  const app = clientLibraries.find((library) => library.name === name)!.connect({ port });
  return { store: new RedisStore({ client: app.client }), ready: app.ready(), close: async () => app.close() };
}

function connect(port: number, username?: string): Redis {
  const client = new Redis(port, { ...patient, ...(username !== undefined && { username, password: 'any' }) });
  client.on('error', () => {});
  return client;
}

function openCluster(ports: readonly number[]): OpenStore {
  const client = new Cluster(
    ports.map((port) => ({ host: '127.0.0.1', port })),
    { clusterRetryStrategy: () => 20, redisOptions: patient },
  );
  client.on('error', () => {});
  return { store: new RedisStore({ client }), ready: once(client, 'ready'), close: async () => client.disconnect() };
}

function openQuorum(ports: readonly number[], maxLeaseMs: number): OpenStore {
  const clients = ports.map((port) => connect(port));
  const stores = clients.map((client) => new RedisStore({ client }));
  return {
    store: new QuorumStore({ stores, maxLeaseMs }),
    ready: Promise.all(clients.map((client) => once(client, 'ready'))),
    close: async () => {
      for (const client of clients) client.disconnect();
    },
  };
}

function openPostgres(port: number, storeOn: (pool: Pool) => LockStore): OpenStore {
  const pool = poolAt(port);
  return { store: storeOn(pool), ready: pool.query('SELECT 1'), close: () => pool.end() };
}

function openMySql(port: number): OpenStore {
  const pool = createPool({
    host: '127.0.0.1',
    port,
    user: 'root',
    database: 'locks',
    connectionLimit: 4,
    connectTimeout: 1_000,
  });
  return {
    store: new CasStore({ adapter: new MySqlCas({ pool }) }),
    ready: pool.query('SELECT 1'),
    close: () => pool.end(),
  };
}

/** A pool as an application has it that must outlive a failover: it does not wait for long for a server that does not reply. */
export function poolAt(port: number): Pool {
  const database = { host: '127.0.0.1', port, user: 'postgres', database: 'postgres' };
  const pool = new Pool({ ...database, max: 4, connectionTimeoutMillis: 1_000 });
  pool.on('error', () => {});
  return pool;
}
