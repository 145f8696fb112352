import { createPool, type Pool, type PoolOptions } from 'mysql2/promise';
import { CasStore, MySqlCas, mysqlCasTable } from 'reenlock/mysql';
import { describeStoreContract } from 'reenlock/testing/contract';
import { matrix } from '../../support/matrix.ts';
import { type MariadbServer, startMariadb } from '../../support/mysql/server.ts';
import { elapse } from '../../support/stores/elapse.ts';

const isolations = matrix(['READ-COMMITTED'], () => ['SERIALIZABLE']);

describe.each(isolations)('on MariaDB, where transactions are %s', (isolation) => {
  let server: MariadbServer;
  let pool: Pool;
  beforeAll(async () => {
    server = await startMariadb([`--transaction-isolation=${isolation}`]);
    // One connection, opened here: the tests look at what each of them leaves.
    pool = createPool({ uri: server.url, connectionLimit: 1 });
    await pool.query(mysqlCasTable());
    // New data takes seconds of an idle machine.
  }, 60_000);
  afterAll(async () => {
    await pool.end();
    await server.stop();
  });

  // A machine that has too much to do may keep a server for seconds.
  const storeOn = (own: Pool): CasStore => new CasStore({ adapter: new MySqlCas({ pool: own }), deadlineMs: 10_000 });
  const broken = (options: PoolOptions) => {
    const own = createPool({ host: '127.0.0.1', database: 'locks', ...options });
    return { store: storeOn(own), close: () => own.end() };
  };

  describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'CasStore', {
    async create() {
      await pool.query('TRUNCATE reenlock_locks');
      return storeOn(pool);
    },
    elapse: (ms) => elapse(ms, () => timeMs(pool)),
    lacks: ['reachability', 'list', 'edges'],
    losses: [
      {
        name: 'TRUNCATE',
        async happen() {
          await pool.query('TRUNCATE reenlock_locks');
          return storeOn(pool);
        },
      },
    ],
    faults: [
      {
        name: 'nobody listens at the port',
        outcome: 'not-applied',
        create: async () => broken({ port: 1 }),
      },
      {
        name: 'the user has no permission',
        outcome: 'not-applied',
        async create() {
          await pool.query(`CREATE USER IF NOT EXISTS weak@'127.0.0.1'`);
          return broken({ port: server.port, user: 'weak' });
        },
      },
    ],
  });
});

async function timeMs(pool: Pool): Promise<number> {
  const [rows] = await pool.query('SELECT UNIX_TIMESTAMP(SYSDATE(6)) * 1000 AS now');
  return Number((rows as { now: string }[])[0]?.now);
}
