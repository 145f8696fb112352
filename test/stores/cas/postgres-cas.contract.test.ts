import { Pool } from 'pg';
import { CasStore, PostgresCas, postgresCasTable } from 'reenlock/redis';
import { describeStoreContract } from 'reenlock/testing/contract';
import { matrix } from '../../support/matrix.ts';
import { postgresFaults } from '../../support/postgres/faults.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';
import { elapse } from '../../support/stores/elapse.ts';

const isolations = matrix(['read committed'], () => ['serializable']);

describe.each(isolations)('on PostgreSQL, where transactions are %s', (isolation) => {
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

  const faults = postgresFaults(
    () => server.port,
    (sql) => pool.query(sql),
    (own) => new CasStore({ adapter: new PostgresCas({ pool: own }) }),
  );

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
