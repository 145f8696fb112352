import { createConnection } from 'mysql2/promise';
import { Client, Pool } from 'pg';
import { mysqlCasTable } from '../../src/stores/mysql.ts';
import { PostgresStore } from '../../src/stores/postgres/postgres-store.ts';
import { postgresCasTable } from '../../src/stores/redis.ts';
import { startMariadb } from '../support/mysql/server.ts';
import { type PostgresServer, startPostgres } from '../support/postgres/server.ts';
import { TcpProxy } from '../support/processes/tcp-proxy.ts';
import { type Backend, connectionFaults, once, type Random, serverFaults } from './backend.ts';
import type { StoreSetup } from './processes/open-store.ts';

/** A connection of the test itself, and its end. */
interface Session {
  run(sql: string): Promise<unknown>;
  end(): Promise<unknown>;
}

/** A database, as the faults need it. */
interface Database {
  readonly server: Parameters<typeof serverFaults>[0] & { readonly port: number; stop(): Promise<void> };
  readonly kind: Extract<StoreSetup['kind'], 'postgres' | 'postgres-cas' | 'mysql-cas'>;
  connect(): Promise<Session>;
  /** Every operation on a lock begins with its row in this table. */
  readonly table: string;
  /** Ends all sessions but the one that it runs in. */
  endOthers(session: Session): Promise<unknown>;
  /** What a statement has in it that changes a lock. */
  readonly change: RegExp;
}

async function startDatabaseBackend(database: Database, random: Random): Promise<Backend> {
  const { server, kind, connect, table, change } = database;
  const proxy = await TcpProxy.start(server.port, 'any');
  const endSessions = async (): Promise<void> => {
    const session = await connect();
    await database.endOthers(session);
    await session.end();
  };
  const lockRows = async (): Promise<() => unknown> => {
    const session = await connect();
    await session.run('BEGIN');
    await session.run(`SELECT 1 FROM ${table} FOR UPDATE`);
    return () => session.end();
  };
  return {
    setup: { kind, port: proxy.port },
    direct: { kind, port: server.port },
    faults: [
      ...connectionFaults(proxy, random),
      ...serverFaults(server),
      once('connection', 'a reply lost', () => void proxy.loseReply(([text = '']) => change.test(text))),
      once('data', 'sessions ended', endSessions),
      { kind: 'server', name: 'all rows locked by somebody else', begin: lockRows },
    ],
    async stop() {
      await proxy.stop();
      await server.stop();
    },
  };
}

export async function startPostgresBackend(random: Random): Promise<Backend> {
  const server = await startPostgres({ keepsCommits: true });
  const pool = new Pool({ connectionString: server.url });
  await new PostgresStore({ pool }).migrate();
  await pool.end();
  const change = /"(acquire|renew|release)"/;
  return startDatabaseBackend({ ...postgres(server), kind: 'postgres', table: 'reenlock.locks', change }, random);
}

export async function startPostgresCasBackend(random: Random): Promise<Backend> {
  const database = postgres(await startPostgres({ keepsCommits: true }));
  await setUp(database, postgresCasTable());
  return startDatabaseBackend({ ...database, kind: 'postgres-cas', table: 'reenlock_locks', change: write }, random);
}

export async function startMySqlCasBackend(random: Random): Promise<Backend> {
  // What was committed is there after a kill.
  const server = await startMariadb(['--innodb-flush-log-at-trx-commit=1']);
  const connect = async (): Promise<Session> => {
    const connection = await createConnection(server.url);
    // Its statement reports it.
    connection.on('error', () => {});
    return { run: async (sql) => (await connection.query(sql))[0], end: () => connection.end() };
  };
  const endOthers = async ({ run }: Session): Promise<void> => {
    const others = "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user = 'root'";
    for (const { id } of (await run(others)) as { id: number }[]) {
      // It may have ended by itself.
      await run(`KILL ${id}`).catch((error: { errno?: number }) => expect(error.errno).toBe(1094));
    }
  };
  await setUp({ connect }, mysqlCasTable());
  const common = { server, connect, endOthers };
  return startDatabaseBackend({ ...common, kind: 'mysql-cas', table: 'reenlock_locks', change: write }, random);
}

const write = /\b(INSERT|UPDATE|DELETE) /;

function postgres(server: PostgresServer): Pick<Database, 'server' | 'connect' | 'endOthers'> {
  const connect = async (): Promise<Session> => {
    const client = new Client({ connectionString: server.url });
    // Its statement reports it.
    client.on('error', () => {});
    await client.connect();
    return { run: (sql) => client.query(sql), end: () => client.end() };
  };
  const others = "pid <> pg_backend_pid() AND backend_type = 'client backend'";
  const endOthers = ({ run }: Session) => run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${others}`);
  return { server, connect, endOthers };
}

async function setUp({ connect }: Pick<Database, 'connect'>, sql: string): Promise<void> {
  const session = await connect();
  await session.run(sql);
  await session.end();
}
