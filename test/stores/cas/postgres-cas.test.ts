import { Pool } from 'pg';
import { CasStore, PostgresCas, postgresCasTable } from 'reenlock/redis';
import { LockConfigError } from '../../../src/core/model/errors/mistakes.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { type PostgresServer, startPostgres } from '../../support/postgres/server.ts';

describe('PostgresCas', () => {
  const stage = new StoreStage();
  let server: PostgresServer;
  let pool: Pool;
  beforeAll(async () => {
    server = await startPostgres();
  });
  beforeEach(async () => {
    pool = new Pool({ connectionString: server.url });
    // An idle connection hears that the server goes.
    pool.on('error', () => {});
    await pool.query('DROP TABLE IF EXISTS reenlock_locks');
    await pool.query(postgresCasTable());
    stage.store = new CasStore({ adapter: new PostgresCas({ pool }) });
  });
  afterEach(async () => {
    await stage.end();
    await pool.end();
  });
  afterAll(() => server.stop());

  async function keys(): Promise<string[]> {
    const { rows } = await pool.query<{ key: string }>('SELECT key FROM reenlock_locks ORDER BY key');
    return rows.map(({ key }) => key);
  }

  it('The table has an index that finds what has expired', async () => {
    const indexes = `SELECT indexdef FROM pg_indexes WHERE tablename = 'reenlock_locks'`;
    const { rows } = await pool.query<{ indexdef: string }>(indexes);
    expect(rows.filter(({ indexdef }) => indexdef.endsWith('(expires_at)'))).toHaveLength(1);
  });

  it('A missing table, or its schema, is an error that names what to do', async () => {
    await pool.query('DROP TABLE reenlock_locks');
    for (const table of ['reenlock_locks', 'nowhere.held']) {
      stage.store = new CasStore({ adapter: new PostgresCas({ pool, table }) });
      await expect(stage.deafProcess().line().ask()).rejects.toMatchObject({
        outcome: 'not-applied',
        message: expect.stringContaining('run the SQL of `postgresCasTable()`'),
      });
    }
  });

  it('The table may be created again, and in a schema', async () => {
    await pool.query(postgresCasTable());
    await pool.query('CREATE SCHEMA IF NOT EXISTS locks');
    for (const _ of [1, 2]) await pool.query(postgresCasTable('locks.held'));
    stage.store = new CasStore({ adapter: new PostgresCas({ pool, table: 'locks.held' }) });
    await stage.deafProcess().line().hold();
    expect((await pool.query('SELECT key FROM locks.held')).rows).toEqual([{ key: 'reenlock:order:42' }]);
    expect(await keys()).toEqual([]);
  });

  it('A new row removes two expired ones, and no other', async () => {
    const insert = `INSERT INTO reenlock_locks
      SELECT $1 || n, '', clock_timestamp() + n * $2::interval FROM generate_series(1, 3) n`;
    await pool.query(insert, ['expired', '-1 second']);
    await pool.query(insert, ['kept', '1 hour']);
    const process = stage.deafProcess();
    await process.line(undefined, { id: 'a' }).hold();
    // Those that expired first.
    expect(await keys()).toEqual(['expired1', 'kept1', 'kept2', 'kept3', 'reenlock:a']);
    await process.line(undefined, { id: 'b' }).hold();
    expect(await keys()).toEqual(['kept1', 'kept2', 'kept3', 'reenlock:a', 'reenlock:b']);
    await process.line(undefined, { id: 'c' }).hold();
    expect(await keys()).toHaveLength(6);
  });

  it('A new row does not wait for an expired one that another transaction has locked', async () => {
    await pool.query(`INSERT INTO reenlock_locks VALUES ('expired', '', clock_timestamp() - interval '1 second')`);
    const blocker = await pool.connect();
    await blocker.query('BEGIN');
    await blocker.query('SELECT * FROM reenlock_locks FOR UPDATE');
    expect(await new PostgresCas({ pool }).create('new', 'text', longMs)).toBe(true);
    await blocker.query('ROLLBACK');
    blocker.release();
    expect(await keys()).toEqual(['expired', 'new']);
  });

  it('An expired row under the same key stays and does not let a new one in', async () => {
    const adapter = new PostgresCas({ pool });
    await pool.query(`INSERT INTO reenlock_locks VALUES ('k', 'old', clock_timestamp() - interval '1 second')`);
    expect(await adapter.create('k', 'new', longMs)).toBe(false);
    expect((await adapter.read('k')).value).toBe('old');
  });

  it('A row that is replaced is kept for the time that was then asked for', async () => {
    const adapter = new PostgresCas({ pool });
    await adapter.create('k', 'one', 1_000);
    await adapter.replace('k', 'one', 'two', 3_600_000);
    const left = `SELECT extract(epoch FROM expires_at - clock_timestamp())::int AS seconds FROM reenlock_locks`;
    const { rows } = await pool.query<{ seconds: number }>(left);
    expect(rows[0]?.seconds).toBeGreaterThan(3_500);
  });

  it('An expired record under its own key is overwritten', async () => {
    const process = stage.deafProcess();
    await process.line().hold();
    await pool.query(`UPDATE reenlock_locks SET expires_at = clock_timestamp() - interval '1 second',
      value = regexp_replace(value, '"untilMs":[0-9]+', '"untilMs":1')`);
    await process.line().hold();
    expect(await keys()).toEqual(['reenlock:order:42']);
  });

  it('If two write at once under serializable isolation, one learns that the other was faster', async () => {
    const options = '-c default_transaction_isolation=serializable';
    const strict = new Pool({ connectionString: server.url, options });
    const adapter = new PostgresCas({ pool: strict });
    for (let round = 0; round < 20; round++) {
      const [key, ttlMs] = [`k${round}`, 60_000];
      await adapter.create(key, 'one', ttlMs);
      const writes = [1, 2, 3, 4].map((writer) => adapter.replace(key, 'one', `two ${writer}`, ttlMs));
      expect((await Promise.all(writes)).filter(Boolean)).toHaveLength(1);
    }
    await strict.end();
  });

  it.each([
    [undefined, 'Expected `pool` to be a Pool'],
    [{ pool: {} }, 'Expected `pool` to be a Pool'],
    [{ pool: { connect() {} }, table: 'Locks' }, 'Expected `table` to be'],
    [{ pool: { connect() {} }, table: 'a; DROP TABLE b' }, 'Expected `table` to be'],
  ])('PostgresCas refuses the options %j', (options, message) => {
    const build = () => new PostgresCas(options as never);
    expect(build).toThrow(LockConfigError);
    expect(build).toThrow(message);
  });

  it('PostgresCas refuses to create a table of any other name', () => {
    const long = 'a'.repeat(41);
    expect(postgresCasTable(`${long}.${long}`)).toContain(`CREATE TABLE IF NOT EXISTS ${long}.${long} (`);
    for (const table of ['a b', '', '1a', 'a.b.c', `${long}a`, `a.${long}a`, 'a;']) {
      expect(() => postgresCasTable(table)).toThrow(LockConfigError);
    }
  });
});
