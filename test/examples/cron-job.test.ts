import { getLock, lock } from 'reenlock';
import { orderKey } from '../../examples/orders/key.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import { beside, Example, readOrder, ship, stopExamples } from './example.ts';

const skipped = /^settlement: another instance has this round$/;
const settled = /^settlement [0-9a-f]{32}: order \d+, \d+ cents$/;

describe('cron-job/server.ts', () => {
  const redis = useRedis();
  afterEach(stopExamples);
  const start = () => Example.start('cron-job/server.ts', { REDIS_URL: redis.server.url, SCHEDULE: '* * * * * *' });

  it('settles each cent once, in the midst of requests, where every instance has the schedule', async () => {
    const examples = await Promise.all([start(), start()]);
    const ids = ['1', '2', '3', '4'];
    const requests = Array.from({ length: 40 }, (_, index) => ship(examples[index % 2]!, ids[index % 4]!));
    const statuses = (await Promise.all(requests)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(20);
    for (const id of ids) {
      let order = await readOrder(examples[0]!, id);
      while (order.charged > 0) {
        await Promise.race(examples.map((example) => nextRound(example)));
        order = await readOrder(examples[0]!, id);
      }
      expect(order).toEqual({ id, shipped: 5, stock: 0, charged: 0, settled: 2_500 });
    }
    for (const example of examples) example.kill('SIGTERM');
    const results = await Promise.all(examples.map((example) => example.exited));
    expect(results.map(({ code, stderr }) => ({ code, stderr }))).toEqual(Array(2).fill({ code: 0, stderr: '' }));
    const cents = examples.flatMap(({ lines }) => lines.map((line) => Number(/, (\d+) cents$/.exec(line)?.[1] ?? 0)));
    expect(cents.reduce((sum, each) => sum + each)).toBe(10_000);
  });

  it('leaves the round to the process that has it, and does the next one itself', async () => {
    const example = await start();
    expect((await ship(example, '8')).status).toBe(201);
    const before = example.lines.length;
    await beside(redis.server.url, async () => {
      const round = await lock.acquire('settlement');
      await example.line(skipped);
      const settledBefore = example.lines.slice(before).filter((line) => settled.test(line)).length;
      await example.line(skipped, 2);
      expect(example.lines.slice(before).filter((line) => settled.test(line))).toHaveLength(settledBefore);
      await round.release();
    });
    await example.line(/: order 8, 500 cents$/);
  });

  it('told to stop while it waits for an order, gives up, settles nothing and ends with 0', async () => {
    const example = await start();
    await beside(redis.server.url, async () => {
      await lock.acquire(orderKey('9'));
      const answer = ship(example, '9');
      await example.line(/^waits for order:9$/);
      await lock.release(orderKey('9'));
      expect((await answer).status).toBe(201);
      await example.line(/: order 9, 500 cents$/);

      const waits = example.lines.filter((line) => line === 'waits for order:9').length;
      await lock.acquire(orderKey('9'));
      await example.line(/^waits for order:9$/, waits + 1);
      // The round is its own until it is over: no other instance begins the next beside it.
      expect(await getLock('settlement').isLocked()).toBe(true);
      example.kill('SIGTERM');
      const { code, stderr } = await example.exited;
      // node-cron reports each second for which the round has waited.
      const others = stderr.split('\n').filter((line) => !line.includes('blocked by overlap prevention'));
      expect({ code, others }).toEqual({ code: 0, others: [''] });
      expect(example.lines.at(-1)).toMatch(/^settlement [0-9a-f]{32}: stopped$/);
    });
  });
});

/** Once an instance has done a round, or left it. */
function nextRound(example: Example): Promise<string> {
  return example.line(/^settlement/, example.lines.filter((line) => line.startsWith('settlement')).length + 1);
}
