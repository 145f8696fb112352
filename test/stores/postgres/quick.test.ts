import { format } from '../../../src/stores/postgres/sql/schema.ts';
import { usePostgres } from '../../support/postgres/stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

type Op = Readonly<Record<string, unknown>>;

const names = { owner: 'owner', hold: 'hold', process: 'process' };
const acquire = { ...names, op: 'acquire', mode: 'write', leaseMs: 10_000, claimMs: 1_000, priority: 0, queue: false };
const release = { ...names, op: 'release', tombstoneMs: 0, announce: false };
/** Changes nothing; the SQL has quick paths only for an operation that was sent alone. */
const idle = { ...names, op: 'renew', hold: 'nobody', fence: 0, leaseMs: 1 };
const farFence = 4_000_000_000_000_000;
/** How many leases a time is away. */
const leases = (ms: string) => `round((${ms} - extract(epoch FROM clock_timestamp()) * 1000) / 10000)`;

describe('The quick paths of PostgresStore', () => {
  const stage = usePostgres();

  async function run(id: string, ...ops: Op[]): Promise<readonly unknown[][]> {
    const sql = 'SELECT reenlock.run($1, $2, $3) AS replies';
    const { rows } = await stage.pool.query(sql, [format, id, JSON.stringify(ops)]);
    return rows[0].replies;
  }

  /**
   * What is stored about a lock, with the times as whole leases from now. How long its row is kept is rounded up to ten minutes:
   * counted from `atMs`, it is the same before and after such a step.
   */
  async function stored(id: string, atMs: number): Promise<object> {
    const { rows } = await stage.pool.query(
      `SELECT l.holds, l.writes, l.writer, l.claims, l.waiters, l.permits,
        CASE gone_ms WHEN 0 THEN NULL WHEN reenlock.gone_after(${farFence} / 1000 + 1) THEN gone_ms
          ELSE gone_ms - reenlock.gone_after($2) END AS kept,
        l.fence >= ${farFence} AS is_far, l.fence > 0 AS has_fence, ${leases('l.earliest_ms')} AS earliest,
        (SELECT jsonb_agg(jsonb_build_array(owner, hold_id, process, mode, is_claim, is_raised, ${leases('ends_ms')}))
          FROM reenlock.holds WHERE lock_id = l.id) AS held,
        (SELECT jsonb_agg(jsonb_build_array(hold_id, status, ${leases('until_ms')})) FROM reenlock.tombstones WHERE lock_id = l.id) AS released
      FROM reenlock.locks l WHERE id = $1`,
      [id, atMs],
    );
    return rows[0];
  }

  const stale = 'UPDATE reenlock.locks SET gone_ms = 0;';
  const lapsed = `${stale} UPDATE reenlock.holds SET ends_ms = 1`;
  const claimed = `${stale} UPDATE reenlock.holds SET is_claim = true; UPDATE reenlock.locks SET claims = 1`;
  const planted = `${stale} INSERT INTO reenlock.holds (lock_id, owner, hold_id, process, mode, ends_ms, is_claim)
    SELECT id, 'owner', 'hold', 'process', 'write', 4e12, false FROM reenlock.locks ON CONFLICT DO NOTHING;
    UPDATE reenlock.locks SET holds = 1, writes = 1, writer = 'owner'`;
  const forgotten = `${stale} UPDATE reenlock.tombstones SET until_ms = 1`;
  type Case = [title: string, op: Op, before?: readonly Op[], sql?: string];
  const cases: readonly Case[] = [
    ['An acquire of a new key', acquire],
    ['An acquire to read', { ...acquire, mode: 'read' }],
    ['An acquire of a permit', { ...acquire, op: 'acquirePermit', mode: 'permit', permits: 2 }],
    ['An acquire to write after permits', acquire, [{ ...acquire, mode: 'permit', permits: 2 }, release], stale],
    ['An acquire with the least fence', { ...acquire, minFence: farFence }],
    ['An acquire after a fence that is far ahead', acquire, [{ ...acquire, minFence: farFence }, release], stale],
    ['An acquire that was cancelled', acquire, [{ ...release, tombstoneMs: 10_000 }], stale],
    ['An acquire long after it was cancelled', acquire, [{ ...release, tombstoneMs: 10_000 }], forgotten],
    ['A release of a writer', release, [acquire], stale],
    ['A release of a reader', release, [{ ...acquire, mode: 'read' }], stale],
    ['A release of a permit', release, [{ ...acquire, op: 'acquirePermit', mode: 'permit', permits: 2 }], stale],
    ['A release of a claim', release, [acquire], claimed],
    ['A release after the lease', release, [acquire], lapsed],
    ['A release that is remembered', { ...release, tombstoneMs: 10_000 }, [acquire], stale],
    ['A release that is announced', { ...release, announce: true }, [acquire], stale],
    [
      'A release that was remembered before',
      { ...release, tombstoneMs: 20_000 },
      [{ ...release, tombstoneMs: 10_000 }, acquire],
      planted,
    ],
    ['A release of another hold', { ...release, hold: 'other' }, [acquire], stale],
  ];

  it.each(cases.map((one) => [one[0], one] as const))(
    '%s leaves and returns what it does beside another operation',
    async (_, [, op, before = [], sql]) => {
      const results: unknown[] = [];
      for (const [id, ops] of [
        ['alone', [op]],
        ['beside', [op, idle]],
      ] as const) {
        for (const earlier of before) await run(id, earlier, idle);
        if (sql !== undefined) await stage.pool.query(sql);
        const [reply] = (await run(id, ...ops)) as [unknown[]];
        // The end of the lease that it granted, else its time.
        const atMs = Number(reply[5] ?? reply[1]);
        const timeless = reply.map((part) => (Number(part) > 1e12 ? 'a time' : part));
        results.push({ reply: JSON.stringify(timeless).replace(id, 'the key'), ...(await stored(id, atMs)) });
      }
      expect(results[0]).toEqual(results[1]);
    },
  );
});
