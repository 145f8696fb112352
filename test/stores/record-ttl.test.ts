import { CasStore, RedisCas, RedisStore } from 'reenlock/redis';
import { longMs } from '../../src/testing/contract/harness.ts';
import { usePostgres } from '../support/postgres/stage.ts';
import { useRedis } from '../support/redis/redis-stage.ts';

const recordTtlMs = 120_000;
/** More than that, the longest lease here and what the store may add. Less than the default. */
const mostMs = 1_000_000;

describe('The record of a key, with `recordTtlMs`', () => {
  describe('on Redis', () => {
    const stage = useRedis();
    const record = 'reenlock:{order:42}:lock';
    beforeEach(() => {
      stage.store = new RedisStore({ client: stage.client, recordTtlMs });
    });

    /** Checks for how long the record lasts when the last lease is over. */
    async function expectKept(leaseMs: number): Promise<void> {
      const left = await stage.client.pttl(record);
      expect(left).toBeGreaterThan(leaseMs + recordTtlMs - longMs);
      expect(left).toBeLessThan(mostMs);
    }

    it('It is kept for that time after each operation that writes it', async () => {
      const process = await stage.process();
      const [first, second, reader, moved] = [process.line(), process.line(), process.reader(), process.reader()];
      const { fence } = await first.hold();
      await expectKept(longMs);
      await second.wait();
      await first.renew(fence, 2 * longMs);
      await expectKept(2 * longMs);
      await first.release(longMs);
      await expectKept(longMs);
      await second.release(longMs);
      await expectKept(0);
      await reader.hold({ leaseMs: 10 * longMs });
      await expectKept(10 * longMs);
      await reader.transfer(moved);
      await expectKept(longMs);
      const { holds } = await stage.inspect();
      await stage.store.forceRelease('order:42', holds[0]?.fence ?? 0);
      await expectKept(0);
    });

    it('A store refuses less than a minute', () => {
      const message = 'Expected `recordTtlMs` to be a whole number of milliseconds, 60000 to 2147483647, got `59999`';
      const { client } = stage;
      expect(() => new RedisStore({ client, recordTtlMs: 59_999 })).toThrow(message);
      expect(() => new CasStore({ adapter: new RedisCas({ client }), recordTtlMs: 59_999 })).toThrow(message);
    });
  });

  it('It is kept for that time by a store of records', async () => {
    const adapter = { read: jest.fn(), create: jest.fn(async () => true), replace: jest.fn(), remove: jest.fn() };
    adapter.read.mockResolvedValue({ value: undefined, nowUs: 1e15 });
    const store = new CasStore({ adapter, recordTtlMs });
    const request = { id: 'a', holdId: 'h', owner: 'o', process: 'p', claimMs: 1, mode: 'write', priority: 0 } as const;
    await store.acquire(request, { leaseMs: longMs, queue: false, maxWaiters: 1, livenessMs: 1 });
    expect(adapter.create).toHaveBeenCalledWith('reenlock:a', expect.any(String), longMs + recordTtlMs);
  });

  describe('on PostgreSQL', () => {
    const stage = usePostgres();

    it('No sweep removes a hold before its lease has ended, however long that is', async () => {
      const leaseMs = 36_000_000;
      const hold = (id: string, over: { leaseMs?: number } = {}) =>
        ((line) => line.hold(over).then(({ fence }) => ({ line, fence })))(stage.deafProcess().line(undefined, { id }));
      await hold('granted', { leaseMs });
      const renewed = await hold('renewed');
      await renewed.line.renew(renewed.fence, leaseMs);
      await (await hold('passed')).line.transfer(stage.deafProcess().line(undefined, { id: 'passed' }), leaseMs);
      const before = await hold('claimed');
      await (await stage.process()).line(undefined, { id: 'claimed', claimMs: leaseMs }).wait();
      await before.line.release();
      const { rows } = await stage.pool.query(
        'SELECT id FROM reenlock.locks JOIN reenlock.holds ON lock_id = id WHERE gone_ms > ends_ms + 3600000 ORDER BY id',
      );
      expect(rows.map(({ id }) => id)).toEqual(['claimed', 'granted', 'passed', 'renewed']);
    });

    it('A sweep removes what has ended for that time, and remembered releases, and no hold', async () => {
      const process = stage.deafProcess();
      const [held, used] = [process.line(), process.line(undefined, { id: 'used' })];
      await held.hold();
      await used.hold();
      await used.release(longMs);
      expect(() => stage.storeOf({ recordTtlMs: 59_999 })).toThrow('Expected `recordTtlMs` to be');
      const kept = async (): Promise<unknown[]> =>
        (await stage.pool.query('SELECT id FROM reenlock.locks ORDER BY id')).rows;
      const sweep = (keepMs: number) => stage.pool.query('SELECT reenlock.sweep(1, 0, 100, $1) AS swept', [keepMs]);
      await sweep(recordTtlMs);
      expect(await kept()).toHaveLength(2);
      // As if it were used that long ago, rounded up.
      await stage.pool.query(
        `UPDATE reenlock.locks SET gone_ms = gone_ms - ${recordTtlMs + longMs + 600_000} WHERE id = 'used'`,
      );
      await sweep(3_600_000);
      expect(await kept()).toHaveLength(2);
      await stage.pool.query('UPDATE reenlock.tombstones SET until_ms = 1');
      expect((await sweep(recordTtlMs)).rows).toEqual([{ swept: [expect.any(Number), false] }]);
      expect(await kept()).toEqual([{ id: held.request.id }]);
      expect((await stage.pool.query('SELECT * FROM reenlock.tombstones')).rows).toEqual([]);
      expect((await stage.order()).holds).toEqual([held.holdId]);
    });
  });
});
