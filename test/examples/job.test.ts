import { once } from 'node:events';
import { createLocks, lock, runInTrace } from 'reenlock';
import { settleOrders } from '../../examples/job/settlement.ts';
import { MemoryDatabase } from '../../examples/orders/database.ts';
import { orderKey } from '../../examples/orders/key.ts';
import { createServices } from '../../examples/orders/setup.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import { startRedis } from '../support/redis/server.ts';
import { until } from '../support/until.ts';
import { Example, readOrder, ship, stopExamples } from './example.ts';

const ids = ['1', '2', '3', '4'];

/** Ships all that there is of four orders, while the settlement runs, and awaits that every cent is settled. */
async function shipAndSettle(...examples: readonly Example[]): Promise<void> {
  const requests = Array.from({ length: 40 }, (_, index) => ship(examples[index % examples.length]!, ids[index % 4]!));
  const statuses = (await Promise.all(requests)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 201)).toHaveLength(20);
  for (const id of ids) {
    let order = await readOrder(examples[0]!, id);
    while (order.charged > 0) order = await readOrder(examples[0]!, id);
    expect(order).toEqual({ id, shipped: 5, stock: 0, charged: 0, settled: 2_500 });
  }
}

function settledCents(example: Example): number {
  const amounts = example.lines.map(
    (line) => /^settlement [0-9a-f]{32}: order \d, (\d+) cents$/.exec(line)?.[1] ?? '0',
  );
  return amounts.map(Number).reduce((sum, cents) => sum + cents, 0);
}

describe('job/server.ts', () => {
  const redis = useRedis();
  afterEach(stopExamples);

  it('settles each cent once when requests and another settlement run in other processes', async () => {
    const env = { REDIS_URL: redis.server.url, NIGHT_MS: '1' };
    const examples = await Promise.all([
      Example.start('job/server.ts', env),
      Example.start('job/server.ts', env),
      Example.start('koa-orders/server.ts', env),
    ]);
    await shipAndSettle(...examples);
    for (const example of examples) example.kill('SIGTERM');
    const results = await Promise.all(examples.map((example) => example.exited));
    expect(results.slice(0, 2).map(({ code }) => code)).toEqual([0, 0]);
    expect(settledCents(examples[0]!) + settledCents(examples[1]!)).toBe(10_000);
  });

  it('goes on serving when a round fails, and settles with a later one', async () => {
    const { client, server } = redis;
    await client.set('orders', 'no hash'); // What a round asks for is refused.
    const example = await Example.start('job/server.ts', { REDIS_URL: server.url, NIGHT_MS: '1' });
    const failed = async (): Promise<number> =>
      Number(/cmdstat_hkeys:.*failed_calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
    await until(failed, (count) => count > 1);
    await client.del('orders');
    await shipAndSettle(example);
  });

  it('told to stop in a round to which its database does not reply, ends with 0', async () => {
    const gone = await startRedis();
    try {
      const example = await Example.start('job/server.ts', { REDIS_URL: gone.url, NIGHT_MS: '1' });
      expect((await ship(example, '1')).status).toBe(201);
      await example.line(/: order 1, 500 cents$/);
      gone.pause();
      // By then the round has given its lock call up, too, and the next one has asked the database.
      expect((await ship(example, '1')).status).toBe(503);
      example.kill('SIGTERM');
      expect((await example.exited).code).toBe(0);
    } finally {
      await gone.stop();
    }
  });
});

describe('settleOrders', () => {
  it('stops waiting for an order when its signal is aborted, and settles nothing more', async () => {
    const locks = createLocks();
    const { orders, payments } = createServices(new MemoryDatabase());
    await runInTrace(() => orders.ship('1'), { locks });
    const stop = new AbortController();
    locks.on('waiting', () => stop.abort());
    const log = jest.spyOn(console, 'log').mockImplementation(() => {});

    const isOver = new AbortController();
    const request = runInTrace(
      async () => {
        await lock.acquire(orderKey('1'));
        await once(isOver.signal, 'abort');
      },
      { locks },
    );
    await settleOrders(payments, locks, stop.signal);
    expect(log).toHaveBeenCalledWith(expect.stringMatching(/^settlement [0-9a-f]{32}: stopped$/));
    log.mockRestore();
    isOver.abort();
    await request;
    expect([await payments.charged('1'), await payments.settled('1')]).toEqual([500, 0]);
    await locks.close();
  });
});
