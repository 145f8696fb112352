import { tables, usePostgres } from '../../support/postgres/stage.ts';

describe('The plans of PostgresStore', () => {
  const stage = usePostgres();

  it('A call reads neither a whole table nor a bitmap, even if the tables were empty when they were vacuumed', async () => {
    const names = tables.map((name) => `reenlock.${name}`).join(', ');
    await stage.pool.query(`VACUUM (ANALYZE) ${names}`);
    const pool = stage.connect({ max: 1 });
    stage.store = stage.storeOf({ pool });
    const scans = async (): Promise<{ whole: number; fetched: number; byIndex: number }> => {
      await pool.query('SELECT pg_stat_force_next_flush()');
      const { rows } =
        await pool.query(`SELECT sum(t.seq_scan)::integer AS whole, sum(t.idx_tup_fetch)::integer AS fetched,
        (SELECT sum(idx_tup_fetch)::integer FROM pg_stat_user_indexes WHERE schemaname = 'reenlock') AS "byIndex"
        FROM pg_stat_user_tables AS t WHERE schemaname = 'reenlock'`);
      return rows[0] as { whole: number; fetched: number; byIndex: number };
    };
    const before = await scans();
    const process = stage.deafProcess();
    for (let round = 0; round < 20; round++) {
      const [holder, waiter, tried] = [process.line(), process.line(), process.line()];
      await holder.hold();
      await waiter.wait();
      await tried.try();
      await stage.inspect();
      await holder.release(60_000);
      await waiter.release(60_000);
      await tried.release(60_000);
    }
    const after = await scans();
    expect(after.whole).toBe(before.whole);
    // What a bitmap finds counts for its table alone.
    expect(after.fetched - before.fetched).toBe(after.byIndex - before.byIndex);
    expect(after.byIndex).toBeGreaterThan(before.byIndex);
  });
});
