import { createLocks, getLock, lock, runInTrace } from '../../../src/core/index.ts';
import { postgresSchema } from '../../../src/stores/postgres/migration.ts';
import { PostgresStore } from '../../../src/stores/postgres/postgres-store.ts';
import { key } from '../../../src/testing/contract/stage.ts';
import { usePostgres } from '../../support/postgres/stage.ts';

describe('PostgresStore on databases that are set up in other ways', () => {
  const stage = usePostgres();

  /** A new database, and a store on it with a pool of its own. */
  async function created(
    name: string,
    encoding: string,
    settings: readonly string[] = [],
  ): Promise<() => PostgresStore> {
    await stage.pool.query(`DROP DATABASE IF EXISTS ${name}`);
    await stage.pool.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}' LOCALE 'C'`);
    for (const setting of settings) await stage.pool.query(`ALTER DATABASE ${name} SET ${setting}`);
    const connectionString = stage.server.url.replace(/postgres$/, name);
    return () => new PostgresStore({ pool: stage.connect({ connectionString }) });
  }

  /** Takes every path of the SQL functions that two processes take. */
  async function handOn(): Promise<void> {
    const [one, two] = [await stage.process(), await stage.process()];
    const holder = one.line();
    const { fence: first } = await holder.hold();
    await holder.renew(first);
    const readers = [await two.reader().wait(), await two.reader().wait()];
    await holder.release(60_000);
    for (const reader of readers) {
      await two.granted(reader);
      await reader.release(60_000);
    }
    const { fence } = await one.line().hold();
    const waiter = await two.line().wait();
    expect(await stage.store.forceRelease(key, fence)).toBe(true);
    await two.granted(waiter);
    expect((await stage.order()).holds).toEqual([waiter.holdId]);
    for (const process of [one, two]) await process.leave();
  }

  it('The SQL is plain ASCII, which every encoding has', () => {
    expect(postgresSchema()).toMatch(/^[\x20-\x7e\n]*$/);
  });

  it.each(['LATIN1', 'EUC_JP', 'SQL_ASCII'])('Locks work in a database in %s', async (encoding) => {
    const open = await created('encoded', encoding);
    stage.store = open();
    await (stage.store as PostgresStore).migrate();
    await handOn();
  });

  it('A key whose characters the database lacks is a bad key, with the status 400, and others work', async () => {
    const open = await created('encoded', 'LATIN1');
    const store = open();
    stage.store = store;
    await store.migrate();
    const locks = createLocks({ store });
    const failures: unknown[] = [];
    locks.on('storeError', (failure) => void failures.push(failure));
    await runInTrace(
      async () => {
        await lock.acquire('café');
        const calls = [
          () => lock.acquire('注文'),
          () => lock.tryAcquire('注文'),
          () => lock.runAll(['a', '注文', 'z'], () => undefined),
          () => getLock('注文').inspect(),
        ];
        for (const call of calls) {
          await expect(call()).rejects.toMatchObject({
            code: 'ERR_LOCK_KEY',
            status: 400,
            key: '注文',
            message: expect.stringContaining('use a database in UTF8'),
          });
        }
      },
      { locks },
    );
    expect(failures).toEqual([]);
    await locks.close();
  });

  it.each([
    `default_transaction_isolation = 'repeatable read'`,
    'default_transaction_isolation = serializable',
    `lock_timeout = '1ms'`,
    `statement_timeout = '30ms'`,
  ])('Eight processes that create the schema at the same time all succeed where `%s`', async (setting) => {
    const open = await created('busy', 'UTF8', [setting]);
    await Promise.all(Array.from({ length: 8 }, () => open().migrate()));
  });
});
