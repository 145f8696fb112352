import { Pool, type PoolConfig } from 'pg';
import { PostgresStore, type PostgresStoreOptions } from 'reenlock/postgres';
import { describeStoreContract, type StoreHarness } from 'reenlock/testing/contract';
import { matrix } from '../../support/matrix.ts';
import { postgresFaults } from '../../support/postgres/faults.ts';
import { type PgBouncer, startPgBouncer } from '../../support/postgres/pgbouncer.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { tables } from '../../support/postgres/stage.ts';
import { elapse } from '../../support/stores/elapse.ts';

interface Way {
  readonly name: string;
  readonly isBehindPgBouncer: boolean;
  readonly isolation: 'read committed' | 'serializable';
  readonly lacks: NonNullable<StoreHarness['lacks']>;
  listen(server: PostgresServer): PostgresStoreOptions['listen'];
}

const direct: Way = {
  name: 'on PostgreSQL',
  isBehindPgBouncer: false,
  isolation: 'read committed',
  lacks: [],
  listen: () => undefined,
};
const behindPgBouncer: Way = {
  name: 'behind PgBouncer, which only LISTEN passes by, where transactions are serializable',
  isBehindPgBouncer: true,
  isolation: 'serializable',
  lacks: [],
  listen: ({ url }) => url,
};
const withoutListen: Way = {
  name: 'behind PgBouncer, without LISTEN',
  isBehindPgBouncer: true,
  isolation: 'read committed',
  lacks: ['reachability'],
  listen: () => false,
};

describe.each(matrix([direct], () => [behindPgBouncer, withoutListen]))(
  '$name',
  ({ isBehindPgBouncer, isolation, lacks, listen }) => {
    let server: PostgresServer;
    let bouncer: PgBouncer | undefined;
    let admin: Pool;
    let pool: Pool;
    let store: PostgresStore;
    beforeAll(async () => {
      server = await startPostgres();
      admin = await filled({ connectionString: server.url, max: 1 });
      await admin.query(`ALTER DATABASE postgres SET default_transaction_isolation = '${isolation}'`);
      await admin.query(`ALTER DATABASE postgres SET plpgsql.extra_errors = 'all'`);
      bouncer = isBehindPgBouncer ? await startPgBouncer(server, 'transaction') : undefined;
      pool = await filled({ connectionString: (bouncer ?? server).url, max: 10 });
      await new PostgresStore({ pool }).migrate();
      // A busy machine may take long to make a cluster of databases.
    }, 60_000);
    afterAll(async () => {
      await pool.end();
      await admin.end();
      await bouncer?.stop();
      await server.stop();
    });

    const empty = (): Promise<unknown> =>
      admin.query(`TRUNCATE ${tables.map((name) => `reenlock.${name}`).join(', ')}`);

    const faults = postgresFaults(
      () => server.port,
      (sql) => admin.query(sql),
      (own) => new PostgresStore({ pool: own }),
    );

    describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'PostgresStore', {
      async create() {
        await empty();
        store = new PostgresStore({ pool, listen: listen(server) });
        return store;
      },
      elapse: (ms) => elapse(ms, () => timeMs(admin)),
      lacks,
      losses: [
        {
          name: 'TRUNCATE',
          async happen() {
            await empty();
            return store;
          },
        },
        {
          name: 'a schema that was dropped and made again',
          async happen() {
            await admin.query('DROP SCHEMA reenlock CASCADE');
            await store.migrate();
            return store;
          },
        },
      ],
      isNode: true,
      faults,
    });
  },
);

/** Its connections are open, and stay so: the tests look at what each of them leaves. */
async function filled(config: PoolConfig & { max: number }): Promise<Pool> {
  const pool = new Pool({ min: config.max, idleTimeoutMillis: 0, ...config });
  // An idle connection may hear that the server goes.
  pool.on('error', () => {});
  const clients = await Promise.all(Array.from({ length: config.max }, () => pool.connect()));
  for (const client of clients) client.release();
  return pool;
}

async function timeMs(pool: Pool): Promise<number> {
  const { rows } = await pool.query('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now');
  return Number(rows[0].now);
}
