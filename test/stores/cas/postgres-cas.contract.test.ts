import { Pool, type PoolConfig } from 'pg';
import { CasStore, PostgresCas, postgresCasTable } from 'reenlock/redis';
import { describeStoreContract, type StoreFault } from 'reenlock/testing/contract';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { elapse } from '../../support/stores/elapse.ts';

watchLeaks();

describe.each(['read committed', 'serializable'])('on PostgreSQL, where transactions are %s', (isolation) => {
  let server: PostgresServer;
  let pool: Pool;
  beforeAll(async () => {
    server = await startPostgres();
    // One connection, opened here: the tests look at what each of them leaves.
    pool = new Pool({
      max: 1,
      idleTimeoutMillis: 0,
      connectionString: server.url,
      options: `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`,
    });
    // A connection that was ended a moment ago may hear that the server goes.
    pool.on('error', () => {});
    await pool.query(postgresCasTable());
    // A new cluster takes a second of an idle machine.
  }, 60_000);
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  const faults: StoreFault[] = [
    {
      name: 'nobody listens at the port',
      outcome: 'not-applied',
      create: () => broken({ port: 1, host: '127.0.0.1' }),
    },
    {
      name: 'the user has no permission',
      outcome: 'not-applied',
      async create() {
        await pool.query('DROP ROLE IF EXISTS weak');
        await pool.query('CREATE ROLE weak LOGIN');
        return broken({ port: server.port, host: '127.0.0.1', user: 'weak', database: 'postgres' });
      },
    },
  ];

  // A machine that has too much to do may keep a server for seconds.
  const create = (): CasStore => new CasStore({ adapter: new PostgresCas({ pool }), deadlineMs: 10_000 });

  describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'CasStore', {
    async create() {
      await pool.query('TRUNCATE reenlock_locks');
      return create();
    },
    elapse: (ms) => elapse(ms, () => timeMs(pool)),
    lacks: ['reachability', 'list', 'edges'],
    losses: [
      {
        name: 'TRUNCATE',
        async happen() {
          await pool.query('TRUNCATE reenlock_locks');
          return create();
        },
      },
    ],
    faults,
  });
});

async function timeMs(pool: Pool): Promise<number> {
  const { rows } = await pool.query('SELECT extract(epoch FROM clock_timestamp()) * 1000 AS now');
  return Number(rows[0].now);
}

async function broken(config: PoolConfig): ReturnType<StoreFault['create']> {
  const pool = new Pool(config);
  return { store: new CasStore({ adapter: new PostgresCas({ pool }) }), close: () => pool.end() };
}
