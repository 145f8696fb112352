import { Pool, type PoolConfig } from 'pg';
import { PostgresStore, type PostgresStoreOptions } from '../../../src/stores/postgres/postgres-store.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { until } from '../until.ts';
import { type PostgresServer, startPostgres } from './server.ts';

/** The tables of a store. */
export const tables = ['locks', 'holds', 'waiters', 'processes', 'tombstones', 'edges'] as const;

/** One server for the tests of a `describe`; for each of them an empty store, and a pool that is ended with the test. */
export class PostgresStage extends StoreStage {
  #server: PostgresServer | undefined;
  readonly #pools: Pool[] = [];
  #pool: Pool | undefined;

  get server(): PostgresServer {
    return this.#server as PostgresServer;
  }

  /** The application's pool. */
  get pool(): Pool {
    return this.#pool as Pool;
  }

  /** Another pool, of the test's own. */
  connect(config: PoolConfig = {}): Pool {
    const pool = new Pool({ connectionString: this.server.url, ...config });
    // An idle connection may hear that the server goes.
    pool.on('error', () => {});
    this.#pools.push(pool);
    return pool;
  }

  /** Another store: of another process, as it were. */
  storeOf(options: Partial<PostgresStoreOptions> = {}): PostgresStore {
    return new PostgresStore({ pool: this.pool, ...options });
  }

  async start(): Promise<void> {
    this.#server = await startPostgres();
    const pool = new Pool({ connectionString: this.server.url });
    await new PostgresStore({ pool }).migrate();
    await pool.end();
  }

  async begin(): Promise<void> {
    this.#pool = this.connect();
    await this.empty();
    this.store = this.storeOf();
  }

  empty(): Promise<unknown> {
    return this.pool.query(`TRUNCATE ${tables.map((name) => `reenlock.${name}`).join(', ')}`);
  }

  override async end(): Promise<void> {
    await super.end();
    await Promise.all(this.#pools.splice(0).map(endIdle));
  }

  /** The connections that stand for processes. */
  async listeners(): Promise<readonly { readonly user: string; readonly application: string }[]> {
    const { rows } = await this.pool.query(
      `SELECT usename AS user, application_name AS application FROM pg_stat_activity WHERE pid IN (${reachableSessions})`,
    );
    return rows;
  }
}

/** Ends a pool when all is done that stores do in the background: one that is asked for a connection while it ends may never reply. */
export async function endIdle(pool: Pool): Promise<void> {
  await until(() => pool.waitingCount === 0 && pool.idleCount === pool.totalCount);
  await pool.end();
}

const reachableSessions = `SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND granted`;

/** Call it in a `describe`. */
export function usePostgres(): PostgresStage {
  const stage = new PostgresStage();
  // A busy machine may take long to make a cluster of databases.
  beforeAll(() => stage.start(), 60_000);
  afterAll(() => stage.server.stop());
  beforeEach(() => stage.begin());
  afterEach(() => stage.end());
  return stage;
}
