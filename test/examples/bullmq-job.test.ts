import type { Queue } from 'bullmq';
import Redis from 'ioredis';
import { getLock } from 'reenlock';
import { openQueue, type Settlement } from '../../examples/bullmq-job/queue.ts';
import { orderKey } from '../../examples/orders/key.ts';
import { runScript, type Script, startScript } from '../support/processes/processes.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { until } from '../support/until.ts';
import { beside, Example, exampleFile, readOrder, ship, stopExamples } from './example.ts';

/** What a worker process has said, and the process. */
interface Worker {
  readonly script: Script;
  readonly lines: string[];
}

describe('bullmq-job/worker.ts', () => {
  const workers: Worker[] = [];
  let redis: RedisServer;
  let client: Redis;
  let queue: Queue<Settlement>;

  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.url);
    process.env.REDIS_URL = redis.url;
    queue = openQueue();
    await queue.waitUntilReady();
  });
  beforeEach(() => client.flushall());
  afterEach(async () => {
    await stopExamples();
    await Promise.all(workers.splice(0).map(({ script }) => script.stop()));
  });
  afterAll(async () => {
    delete process.env.REDIS_URL;
    await queue.close();
    await client.quit();
    await redis.stop();
  });

  async function startWorker(): Promise<Worker> {
    const script = startScript(exampleFile('bullmq-job/worker.ts'), { env: { REDIS_URL: redis.url } });
    const worker = { script, lines: [] as string[] };
    workers.push(worker);
    void (async () => {
      for await (const line of script.lines()) worker.lines.push(line);
    })();
    await said('Working', worker);
    return worker;
  }

  const settle = (...orders: string[]) => queue.addBulk(orders.map((order) => ({ name: 'settle', data: { order } })));
  const counts = () => queue.getJobCounts('waiting', 'active', 'delayed', 'completed', 'failed');
  const done = (jobs: number) => until(counts, ({ completed }) => completed === jobs);
  const said = (line: string, ...by: readonly Worker[]) =>
    Promise.all(
      by.map(({ lines }) =>
        until(
          () => lines,
          () => lines.includes(line),
        ),
      ),
    );
  const waiters = async () => (await getLock(orderKey('42')).inspect()).waiters;
  /** Cents that were settled, by the log of the workers. */
  const settledCents = () =>
    workers
      .flatMap(({ lines }) => lines.map((line) => /^job [0-9a-f]{32}: order \d+, (\d+) cents$/.exec(line)?.[1] ?? 0))
      .reduce<number>((sum, cents) => sum + Number(cents), 0);

  it('runs on a Redis that evicts nothing, as BullMQ and locks need it', async () => {
    expect(await client.config('GET', 'maxmemory-policy')).toEqual(['maxmemory-policy', 'noeviction']);
  });

  it('two workers and a request that want one order get it one after the other', async () => {
    const example = await Example.start('express-orders/server.ts', { REDIS_URL: redis.url });
    expect((await ship(example, '42')).status).toBe(201);
    const [one, two] = [await startWorker(), await startWorker()];
    const answers: Response[] = [];
    await beside(redis.url, async () => {
      const hold = await getLock(orderKey('42')).acquire();
      // A worker takes one job at a time: while the first waits, the other gets the second.
      await settle('42', '42');
      await said('waits for order:42', one, two);
      const answer = ship(example, '42').then((response) => answers.push(response));
      await until(waiters, ({ length }) => length === 3);
      expect((await counts()).active).toBe(2);
      expect(settledCents()).toBe(0);
      await hold.release();
      await answer;
    });
    await done(2);
    expect(answers.map(({ status }) => status)).toEqual([201]);
    const { charged, settled } = await readOrder(example, '42');
    // The first unit's price for certain; the second's, if the request came in before the last job.
    expect(charged + settled).toBe(1_000);
    await until(settledCents, (cents) => cents === settled);
  });

  it('settles each cent once, in the midst of requests and other workers', async () => {
    const example = await Example.start('express-orders/server.ts', { REDIS_URL: redis.url });
    await Promise.all([startWorker(), startWorker()]);
    const ids = ['1', '2', '3', '4'];
    const shipments = Array.from({ length: 40 }, (_, index) => ship(example, ids[index % 4]!));
    const [answers] = await Promise.all([Promise.all(shipments), settle(...ids, ...ids, ...ids)]);
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(20);
    await done(12);
    await settle(...ids);
    await done(16);
    for (const id of ids)
      expect(await readOrder(example, id)).toEqual({ id, shipped: 5, stock: 0, charged: 0, settled: 2_500 });
    await until(settledCents, (cents) => cents === 10_000);
  });

  it('A worker that must stop gives up its wait, ends with 0, and another one does its job', async () => {
    const example = await Example.start('express-orders/server.ts', { REDIS_URL: redis.url });
    expect((await ship(example, '42')).status).toBe(201);
    const first = await startWorker();
    await beside(redis.url, async () => {
      const hold = await getLock(orderKey('42')).acquire();
      await settle('42');
      await said('waits for order:42', first);
      first.script.kill('SIGTERM');
      // Though the order is still held.
      const { code, stderr } = await first.script.exited;
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(await waiters()).toEqual([]);
      const second = await startWorker();
      await said('waits for order:42', second);
      expect(settledCents()).toBe(0);
      await hold.release();
    });
    await done(1);
    await until(settledCents, (cents) => cents === 500);
    expect(first.lines).toContain('order 42 is put back: The wait for the lock was aborted');
  });

  it('A worker that must stop ends, although its Redis does not reply', async () => {
    const worker = await startWorker();
    redis.pause();
    try {
      worker.script.kill('SIGTERM');
      expect((await worker.script.exited).code).toBe(1);
    } finally {
      redis.resume();
    }
  });

  it('enqueue.ts puts a job for each order that it is given', async () => {
    const args = ['7', '8'];
    const { code, stderr } = await runScript(exampleFile('bullmq-job/enqueue.ts'), {
      args,
      env: { REDIS_URL: redis.url },
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect((await queue.getWaiting()).map(({ data }) => data.order).sort()).toEqual(args);
  });
});
