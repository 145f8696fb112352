import { once } from 'node:events';
import Redis from 'ioredis';
import { Pool } from 'pg';
import { type LockStore, type LocksOptions, MemoryStore } from 'reenlock';
import { PostgresStore } from 'reenlock/postgres';
import { CasStore, QuorumStore, RedisStore } from 'reenlock/redis';
import { matrix } from '../matrix.ts';
import { startPostgres } from '../postgres/server.ts';
import { endIdle } from '../postgres/stage.ts';
import { disconnectTimeout } from '../redis/client.ts';
import { OldRedisStore, RedisNodes } from '../redis/nodes.ts';
import { startRedis } from '../redis/server.ts';
import { startPlainRedis } from '../stores/cas-servers.ts';

/** Where services keep their locks together. */
export interface SharedStore {
  /** The store as one more process has it. It lasts until `release`. */
  open(): LockStore;
  /** Closes the connections of a test. */
  release(): Promise<void>;
  stop(): Promise<void>;
}

export interface SharedStoreKind {
  /** What it is, and what it does not promise to waiters: each test promises only that they take turns, and all end. */
  readonly name: string;
  /** What `Locks` on it need, so that their waiters are quick. */
  readonly options?: LocksOptions;
  readonly hasReaders?: false;
  start(): Promise<SharedStore>;
}

/** In memory and Redis, and in the whole matrix all other stores, too. */
export const sharedStores: readonly SharedStoreKind[] = matrix<SharedStoreKind>(
  [
    { name: 'locks in memory', start: startMemory },
    { name: 'locks in Redis', start: startRedisStore },
  ],
  () => [
    { name: 'locks in PostgreSQL', start: startPostgresStore },
    { name: 'locks as records, whose waiters in other services poll', options: { pollMs: 100 }, start: startCasStore },
    {
      name: 'locks in a quorum, which promises no order between services',
      hasReaders: false,
      start: startQuorumStore,
    },
  ],
);

async function startMemory(): Promise<SharedStore> {
  let store: MemoryStore | undefined;
  return {
    open() {
      store ??= new MemoryStore();
      return store;
    },
    async release() {
      store = undefined;
    },
    stop: async () => {},
  };
}

async function startRedisStore(): Promise<SharedStore> {
  const server = await startRedis();
  const clients: Redis[] = [];
  return {
    open() {
      const client = new Redis(server.url, { disconnectTimeout });
      clients.push(client);
      return new RedisStore({ client });
    },
    async release() {
      const ended = clients.map((client) => once(client, 'end'));
      for (const client of clients.splice(0)) client.disconnect();
      await Promise.all(ended);
    },
    stop: () => server.stop(),
  };
}

async function startPostgresStore(): Promise<SharedStore> {
  const server = await startPostgres();
  const pools: Pool[] = [];
  const connect = (): Pool => {
    const pool = new Pool({ connectionString: server.url });
    // An idle connection may hear that the server goes.
    pool.on('error', () => {});
    pools.push(pool);
    return pool;
  };
  const release = async (): Promise<void> => {
    await Promise.all(pools.splice(0).map(endIdle));
  };
  await new PostgresStore({ pool: connect() }).migrate();
  await release();
  return { open: () => new PostgresStore({ pool: connect() }), release, stop: () => server.stop() };
}

async function startCasStore(): Promise<SharedStore> {
  const server = await startPlainRedis();
  return {
    open: () => new CasStore({ adapter: server.adapter() }),
    release: () => server.release(),
    stop: () => server.stop(),
  };
}

async function startQuorumStore(): Promise<SharedStore> {
  const nodes = new RedisNodes();
  await nodes.start(3);
  return {
    open: () => new QuorumStore({ stores: nodes.connect().map((client) => new OldRedisStore({ client })) }),
    release: () => nodes.disconnect(),
    stop: () => nodes.stop(),
  };
}
