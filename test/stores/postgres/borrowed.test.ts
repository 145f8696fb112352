import { Client, Pool, type PoolClient, type PoolConfig } from 'pg';
import { CasStore, PostgresCas, postgresCasTable } from 'reenlock/redis';
import type { LockStore } from '../../../src/core/model/store.ts';
import { PostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';

/** Before version 8.21, pg does not say whether a connection is in a transaction. */
class OldClient extends Client {
  override getTransactionStatus = undefined as never;
}

/** Not ASCII: its bytes are another text in another encoding. */
const id = 'bücher:42';

const stores: [string, (pool: Pool) => LockStore][] = [
  ['PostgresStore', (pool) => new PostgresStore({ pool, listen: false })],
  ['PostgresCas', (pool) => new CasStore({ adapter: new PostgresCas({ pool }) })],
];
const versions = [
  ['the newest pg', Client],
  ['a pg that does not know of transactions', OldClient],
] as const;

/** What an application may leave on a connection that it releases. */
const leftovers: [string, (client: PoolClient) => Promise<unknown>][] = [
  ['a transaction that has written', (client) => client.query('BEGIN; INSERT INTO work VALUES (1)')],
  ['a transaction that has only begun', (client) => client.query('BEGIN')],
  [
    'a transaction that has an old snapshot',
    (client) => client.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1'),
  ],
  ['a transaction that only reads', (client) => client.query('BEGIN READ ONLY; SELECT 1')],
  [
    'a transaction that has failed',
    async (client) => {
      await client.query('BEGIN');
      await client.query('SELECT 1/0').catch(() => {}); // The transaction fails with it.
    },
  ],
  [
    'statements that were not awaited',
    async (client) => {
      for (const text of ['BEGIN', 'INSERT INTO work VALUES (1)']) client.query(text).catch(() => {}); // As in the application.
    },
  ],
  ['sessions that only read', (client) => client.query('SET default_transaction_read_only = on')],
  ['serializable transactions', (client) => client.query('SET default_transaction_isolation = serializable')],
  ['a role without rights', (client) => client.query('SET ROLE weak')],
  ['another encoding', (client) => client.query(`SET client_encoding = 'LATIN1'`)],
  ['another search path', (client) => client.query('SET search_path = elsewhere')],
];

describe.each(stores)('%s on what an application has left on its connections', (_, storeOn) => {
  const stage = new StoreStage();
  let server: PostgresServer;
  let admin: Pool;
  let pool: Pool | undefined;
  beforeAll(async () => {
    server = await startPostgres();
    admin = new Pool({ connectionString: server.url, idleTimeoutMillis: 0 });
    admin.on('error', () => {}); // It hears that the server goes.
    await new PostgresStore({ pool: admin }).migrate();
    await admin.query(
      `${postgresCasTable()}; CREATE TABLE work (id integer); CREATE ROLE weak; CREATE SCHEMA elsewhere`,
    );
    await admin.query(postgresCasTable('elsewhere.reenlock_locks'));
  }, 60_000);
  beforeEach(async () => {
    await admin.query(
      'TRUNCATE reenlock.locks, reenlock.holds, reenlock.tombstones, reenlock_locks, elsewhere.reenlock_locks',
    );
  });
  afterEach(async () => {
    await stage.end();
    await pool?.end();
    pool = undefined;
  });
  afterAll(async () => {
    await admin.end();
    await server.stop();
  });

  /** The application's pool, and a store on it. The queries that were not awaited warn of it. */
  function open(config: PoolConfig): Pool {
    pool = new Pool({ connectionString: server.url, ...config });
    stage.store = storeOn(pool);
    return pool;
  }

  /** What another process sees. */
  const holdsElsewhere = async (): Promise<string[]> =>
    (await storeOn(admin).inspect(id)).holds.map(({ holdId }) => holdId);

  async function leave(on: Pool, what: (client: PoolClient) => Promise<unknown>, times = 1): Promise<void> {
    const clients = await Promise.all(Array.from({ length: times }, () => on.connect()));
    for (const client of clients) {
      await what(client);
      client.release();
    }
  }

  describe.each(versions)('with %s', (_version, PgClient) => {
    it.each(leftovers)('A grant and a release are true for all processes after %s', async (_what, what) => {
      const application = open({ max: 1, Client: PgClient } as PoolConfig);
      const line = stage.deafProcess().line(undefined, { id });
      await leave(application, what);
      await line.hold();
      expect(await holdsElsewhere()).toEqual([line.holdId]);
      await leave(application, what);
      expect(await line.release(longMs)).toMatchObject({ status: 'released' });
      expect(await holdsElsewhere()).toEqual([]);
      await leave(application, what);
      expect((await stage.inspect(id)).holds).toEqual([]);
      expect((await admin.query('SELECT * FROM work')).rows).toEqual([]);
    });

    it('A call succeeds if every connection of the pool was left in a transaction', async () => {
      const application = open({ max: 5, Client: PgClient } as PoolConfig);
      await leave(application, (client) => client.query('BEGIN'), 5);
      const line = stage.deafProcess().line(undefined, { id });
      await line.hold();
      expect(await holdsElsewhere()).toEqual([line.holdId]);
    });

    it('A connection that is idle is kept', async () => {
      const application = open({ max: 1, Client: PgClient } as PoolConfig);
      let closed = 0;
      application.on('remove', () => {
        closed += 1;
      });
      const line = stage.deafProcess().line();
      await line.hold();
      await line.release(longMs);
      expect([closed, application.totalCount]).toEqual([0, 1]);
    });
  });

  it('An application that always leaves a role without rights is an error, and not for ever', async () => {
    open({ max: 1, options: '-c role=weak' });
    await expect(stage.deafProcess().line().ask()).rejects.toMatchObject({ outcome: 'not-applied' });
  });
});
