import { Redis } from 'ioredis';
import { createPool, type Pool as MySqlPool } from 'mysql2/promise';
import { Pool } from 'pg';
import { MySqlCas, mysqlCasTable } from 'reenlock/mysql';
import { type CasAdapter, PostgresCas, postgresCasTable, RedisCas } from 'reenlock/redis';
import { startMariadb } from '../mysql/server.ts';
import { startPostgres } from '../postgres/server.ts';
import { startRedis } from '../redis/server.ts';

/** A real server that runs no scripts, and connections to it. */
interface CasServer {
  /** An adapter with connections of its own, as another process has. They last until `release`. */
  adapter(): CasAdapter;
  /** Removes every record. */
  clear(): Promise<void>;
  /** Closes the connections of all adapters. */
  release(): Promise<void>;
  stop(): Promise<void>;
}

/** By name, how to start each. */
const casServers: Readonly<Record<string, () => Promise<CasServer>>> = {
  'Redis by plain commands': startPlainRedis,
  PostgreSQL: startTable,
  MariaDB: startMySqlTable,
};

/** Runs tests on each of them, on no record. */
export function describeCasServers(name: string, body: (adapter: () => CasAdapter) => void): void {
  describe.each(Object.entries(casServers))(`${name}, on %s`, (_, start) => {
    let server: CasServer;
    beforeAll(async () => {
      server = await start();
    });
    beforeEach(() => server.clear());
    afterEach(() => server.release());
    afterAll(() => server.stop());
    body(() => server.adapter());
  });
}

export async function startPlainRedis(): Promise<CasServer> {
  const server = await startRedis({ args: ['--user', 'plain', 'on', 'nopass', '~*', '+@all', '-@scripting'] });
  const open: (() => void)[] = [];
  const connect = () => {
    const client = new Redis(server.port, { username: 'plain', password: 'any' });
    open.push(() => client.disconnect());
    return client;
  };
  return {
    adapter() {
      const adapter = new RedisCas({ client: connect() });
      open.push(() => adapter.close());
      return adapter;
    },
    async clear() {
      await connect().flushall();
    },
    async release() {
      for (const close of open.splice(0)) close();
    },
    stop: () => server.stop(),
  };
}

async function startTable(): Promise<CasServer> {
  const server = await startPostgres();
  const open: Pool[] = [];
  const connect = () => {
    const pool = new Pool({ connectionString: server.url, max: 2 });
    // A connection that was ended a moment ago may hear that the server goes.
    pool.on('error', () => {});
    open.push(pool);
    return pool;
  };
  await connect().query(postgresCasTable());
  return {
    adapter: () => new PostgresCas({ pool: connect() }),
    async clear() {
      await connect().query('TRUNCATE reenlock_locks');
    },
    async release() {
      await Promise.all(open.splice(0).map((pool) => pool.end()));
    },
    stop: () => server.stop(),
  };
}

async function startMySqlTable(): Promise<CasServer> {
  const server = await startMariadb();
  const open: MySqlPool[] = [];
  const connect = () => {
    const pool = createPool({ uri: server.url, connectionLimit: 2 });
    open.push(pool);
    return pool;
  };
  await connect().query(mysqlCasTable());
  return {
    adapter: () => new MySqlCas({ pool: connect() }),
    async clear() {
      await connect().query('TRUNCATE reenlock_locks');
    },
    async release() {
      await Promise.all(open.splice(0).map((pool) => pool.end()));
    },
    stop: () => server.stop(),
  };
}
