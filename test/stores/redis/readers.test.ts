import { longMs } from '../../../src/testing/contract/harness.ts';
import { key, type Line } from '../../../src/testing/contract/stage.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';

const record = `reenlock:{${key}}:lock`;
const terms = { maxWaiters: 10_000 };

describe('Readers on Redis', () => {
  const stage = useRedis();

  /** How many commands the scripts of some work run. */
  async function costOf(work: () => Promise<unknown>): Promise<number> {
    await stage.client.config('RESETSTAT');
    await work();
    const stats = await stage.client.info('commandstats');
    return [...stats.matchAll(/calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0);
  }

  /** What a reader costs that comes, renews and goes, and a writer that waits and polls meanwhile. */
  async function costsBeside(count: number): Promise<readonly number[]> {
    await stage.client.flushall('SYNC');
    const process = await stage.process();
    const readers = Array.from({ length: count }, () => process.reader());
    await Promise.all(readers.map((line) => line.hold()));
    const [line, writer] = [process.reader(), process.line()];
    const [{ fence }] = [await line.hold()];
    await writer.wait();
    const last = readers.at(-1) as Line;
    const costs = [
      await costOf(() => last.renew(fence)),
      await costOf(() => writer.ask()),
      await costOf(() => process.reader().wait(terms)),
      await costOf(() => last.release(longMs)),
    ];
    await writer.release();
    costs.push(await costOf(() => process.reader().hold()));
    // The lock itself does not grow with them.
    expect(await stage.client.hlen(record)).toBeLessThan(12);
    return costs;
  }

  it('A reader that joins, renews or leaves costs the server no more alongside a thousand others, and nor does a poll', async () => {
    const [few, many] = [await costsBeside(10), await costsBeside(1_000)];
    // A time to live that is long enough is not set again.
    for (const [index, cost] of many.entries()) expect([index, cost - (few[index] ?? 0) <= 4]).toEqual([index, true]);
  });

  it('All keys outlast the longest lease of a reader', async () => {
    const process = await stage.process();
    const readers = [process.reader(), process.reader(), process.reader()] as const;
    await readers[0].hold();
    await readers[1].hold({ leaseMs: 7_200_000 });
    const { fence } = await readers[2].hold();
    const expectKept = async (ms: number): Promise<void> => {
      for (const name of ['lock', 'holds', 'leases'])
        expect(await stage.client.pttl(`reenlock:{${key}}:${name}`)).toBeGreaterThan(ms + 3_500_000);
    };
    await expectKept(7_200_000);
    await readers[2].renew(fence, 14_400_000);
    await expectKept(14_400_000);
    await readers[1].release();
    await readers[0].release();
    await expectKept(14_400_000);
  });

  it('A reader beside holds whose keys were lost is released all the same, and they keep writers out', async () => {
    const process = await stage.process();
    await process.reader().hold();
    await process.permit(5).hold();
    await stage.client.del(`reenlock:{${key}}:holds`);
    const last = process.reader();
    await last.hold();
    expect((await last.release()).status).toBe('released');
    expect(await process.line().status({ queue: false })).toBe('refused');
  });

  it('Readers whose ends were lost keep writers out until the last lease has expired', async () => {
    const process = await stage.process();
    const readers = [process.reader(), process.reader()] as const;
    for (const reader of readers) await reader.hold();
    await stage.client.del(`reenlock:{${key}}:leases`);
    expect(await process.line().status({ queue: false })).toBe('refused');
    for (const reader of readers) expect((await reader.release()).status).toBe('released');
    expect(await process.line().status({ queue: false })).toBe('granted');
  });
});
