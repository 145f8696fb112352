import { createHash } from 'node:crypto';
import { LockConfigError } from '../../../src/core/model/errors/mistakes.ts';
import { postgresSchema } from '../../../src/stores/postgres/migration.ts';
import { PostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { format, revision } from '../../../src/stores/postgres/sql/schema.ts';
import { usePostgres } from '../../support/postgres/stage.ts';

describe('The schema of PostgresStore', () => {
  const stage = usePostgres();
  afterEach(async () => {
    const pool = stage.connect();
    await pool.query('DROP SCHEMA IF EXISTS reenlock, other CASCADE');
    await new PostgresStore({ pool }).migrate();
    await stage.end();
  });

  const version = async () => (await stage.pool.query('SELECT format, revision FROM reenlock.format')).rows;

  it('The schema has another revision with each change of its SQL', () => {
    const digest = createHash('sha256').update(postgresSchema()).digest('hex').slice(0, 16);
    expect({ format, revision, digest }).toEqual({ format: 1, revision: 21, digest: 'f7f2181fa6f33308' });
  });

  it('Many processes may create the schema at the same time, and again', async () => {
    await stage.pool.query('DROP SCHEMA reenlock CASCADE');
    await Promise.all(Array.from({ length: 5 }, () => stage.storeOf({ pool: stage.connect() }).migrate()));
    await stage.storeOf().migrate();
    expect(await version()).toEqual([{ format, revision }]);
    await stage.deafProcess().line().hold();
  });

  it('Creating the schema again keeps the locks that are held', async () => {
    const line = stage.deafProcess().line();
    await line.hold();
    await stage.pool.query('UPDATE reenlock.format SET revision = 0');
    await stage.pool.query(postgresSchema());
    expect((await stage.order()).holds).toEqual([line.holdId]);
  });

  it('The SQL itself may create the schema, within a transaction, under another name', async () => {
    const client = await stage.pool.connect();
    await client.query('BEGIN');
    await client.query(postgresSchema('other'));
    await client.query('COMMIT');
    client.release();
    stage.store = stage.storeOf({ schema: 'other' });
    const line = stage.deafProcess().line();
    await line.hold();
    expect((await stage.storeOf().inspect(line.request.id)).holds).toEqual([]);
    expect((await stage.order()).holds).toEqual([line.holdId]);
  });

  it('A missing schema is an error that names what to do, and nothing is granted', async () => {
    await stage.pool.query('DROP SCHEMA reenlock CASCADE');
    await expect(stage.deafProcess().line().ask()).rejects.toMatchObject({
      outcome: 'not-applied',
      message: expect.stringContaining('run `store.migrate()`'),
    });
  });

  it('A schema of a newer format is an error in every call of an older process, and never a grant', async () => {
    await newer();
    const { request } = stage.deafProcess().line();
    const calls = [
      stage.deafProcess().line().ask(),
      stage.deafProcess().line().release(),
      stage.deafProcess().line().renew(1),
      stage.inspect(),
      stage.store.list?.({ idPrefix: '', limit: 1 }),
      stage.store.forceRelease('a', 1),
      stage.store.edges?.of('owner'),
      stage.store.edges?.wait(request),
      stage.storeOf().migrate(),
    ];
    for (const call of calls) {
      await expect(call).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied' });
      await expect(call).rejects.toThrow(/newe/);
    }
    await expect(stage.pool.query(postgresSchema())).rejects.toMatchObject({ code: 'RL001' });
  });

  /** What a later version of the package would leave. */
  async function newer(): Promise<void> {
    const next = format + 1;
    await stage.pool.query(postgresSchema().replaceAll(`known_format <> ${format}`, `known_format <> ${next}`));
    await stage.pool.query('UPDATE reenlock.format SET format = format + 1');
    await stage.pool.query(`CREATE OR REPLACE FUNCTION reenlock.version() RETURNS jsonb LANGUAGE sql STABLE AS
      $$ SELECT '[${next}, 1]'::jsonb $$`);
  }

  it('An older process leaves a newer revision as it is, and works on it', async () => {
    await stage.pool.query('UPDATE reenlock.format SET revision = revision + 1');
    await stage.pool.query(`CREATE OR REPLACE FUNCTION reenlock.version() RETURNS jsonb LANGUAGE sql STABLE AS
      $$ SELECT '[${format}, ${revision + 1}]'::jsonb $$`);
    await stage.storeOf().migrate();
    expect(await version()).toEqual([{ format, revision: revision + 1 }]);
    await stage.deafProcess().line().hold();
  });

  it('A role with rights to the functions alone is enough', async () => {
    await stage.pool.query('DROP ROLE IF EXISTS shop');
    await stage.pool.query('CREATE ROLE shop LOGIN');
    await stage.pool.query('GRANT USAGE ON SCHEMA reenlock TO shop');
    const pool = stage.connect({ connectionString: stage.server.url.replace('postgres@', 'shop@') });
    stage.store = stage.storeOf({ pool });
    await stage.storeOf({ pool }).migrate();
    const [one, two] = [await stage.process(), await stage.process()];
    const holder = one.line();
    await holder.hold();
    const waiter = await two.line().wait();
    await holder.release();
    expect(await two.granted(waiter)).toMatchObject({ isClaim: true });
    await expect(pool.query('SELECT * FROM reenlock.holds')).rejects.toMatchObject({ code: '42501' });
    for (const process of [one, two]) await process.leave();
    await stage.pool.query('REVOKE USAGE ON SCHEMA reenlock FROM shop');
    await pool.query('SELECT 1');
  });

  it.each(['', 'A', '1a', 'a b', 'a;', 'a.b', 'public', 'pg_locks', 'a'.repeat(42)])(
    'A schema may not be called `%s`',
    (schema) => {
      expect(() => postgresSchema(schema)).toThrow(LockConfigError);
      expect(() => stage.storeOf({ schema })).toThrow(LockConfigError);
    },
  );

  it.each<[string, object | undefined, string]>([
    ['no options', undefined, 'Expected `pool` to be a Pool of the pg package'],
    ['something else as a pool', { pool: { query() {} } }, 'Expected `pool` to be a Pool of the pg package'],
    ['a `listen` that is empty', { listen: '' }, 'Expected `listen` to be'],
    ['a `timeoutMs` of 0', { timeoutMs: 0 }, 'Expected `timeoutMs` to be'],
    ['an option that there is not', { table: 'locks' }, 'Expected the options of PostgresStore to be among'],
  ])('The store refuses %s', (_, options, message) => {
    const given = options === undefined || 'pool' in options ? options : { pool: stage.pool, ...options };
    expect(() => new PostgresStore(given as never)).toThrow(message);
  });

  it('A record is kept for an hour after its last lease', async () => {
    const { endMs } = await stage.deafProcess().line().hold();
    const { rows } = await stage.pool.query<{ gone_ms: string }>('SELECT gone_ms FROM reenlock.locks');
    expect(Number(rows[0]?.gone_ms)).toBeGreaterThanOrEqual(endMs + 3_600_000);
    expect(Number(rows[0]?.gone_ms)).toBeLessThanOrEqual(endMs + 3_600_000 + 2 * 600_000);
  });
});
