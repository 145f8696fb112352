import { longMs } from '../../../src/testing/contract/harness.ts';
import { key, type Line, type Process } from '../../../src/testing/contract/stage.ts';
import { usePostgres } from '../../support/postgres/stage.ts';

describe('A crowd on PostgreSQL', () => {
  const stage = usePostgres();

  /** Readers that wait behind a writer. */
  async function row(process: Process, count: number): Promise<{ holder: Line; readers: Line[] }> {
    const holder = stage.deafProcess().line();
    await holder.hold();
    const readers = Array.from({ length: count }, () => process.reader());
    await Promise.all(readers.map((reader) => reader.wait({ maxWaiters: 10_000 })));
    return { holder, readers };
  }

  it('The reply to a poll names some of very many claims, those that lapse first among them', async () => {
    const process = await stage.process();
    const { holder, readers } = await row(process, 500);
    await holder.release();
    const holds = new Set((await stage.order()).holds);
    const waiting = readers.filter(({ holdId }) => !holds.has(holdId));
    const made = (await (waiting[0] as Line).ask()).claims;
    const { holds: all } = await stage.inspect();
    const { claims } = await (readers[0] as Line).ask();
    expect([all.length, made.length, claims.length]).toEqual([500, 64 + 244, 64]);
    expect(claims.map(({ holdId }) => holdId)).toEqual(all.slice(1, 65).map(({ holdId }) => holdId));
  });

  it('Of very many holders some are listed', async () => {
    const process = stage.deafProcess();
    const readers = Array.from({ length: 1_100 }, () => process.reader());
    await Promise.all(readers.map((reader) => reader.hold()));
    const writer = await process.line().wait();
    expect((await stage.inspect()).holds).toHaveLength(1_000);
    expect((await stage.store.edges?.wait(writer.request))?.holds).toHaveLength(1_000);
  });

  it('A newcomer does not overtake a live waiter behind more dead ones than one call looks at', async () => {
    const process = await stage.process();
    const holder = process.line();
    await holder.hold();
    await process.line().wait();
    await stage.pool.query(
      `INSERT INTO reenlock.processes VALUES ('${key}', 'dead', (SELECT live_until_ms FROM reenlock.processes), 'suspended', false)`,
    );
    await stage.pool.query(
      `INSERT INTO reenlock.waiters (lock_id, owner, hold_id, process, mode, permits, claim_ms, priority, since_us, front)
        SELECT '${key}', 'owner' || i, 'hold' || i, 'dead', 'write', NULL, ${longMs}, 0, i, 0 FROM generate_series(1, 4200) AS i`,
    );
    await stage.pool.query(`UPDATE reenlock.locks SET waiters = waiters + 4200`);
    await holder.release();
    expect(await process.line().status({ queue: false })).toBe('refused');
  });
});
