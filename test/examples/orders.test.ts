import { getRequestListener } from '@hono/node-server';
import Redis from 'ioredis';
import { createLocks, getLock, lock } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import request from 'supertest';
import { createApp as createExpressApp } from '../../examples/express-orders/app.ts';
import { createApp as createHonoApp } from '../../examples/hono-orders/app.ts';
import { createApp as createKoaApp } from '../../examples/koa-orders/app.ts';
import { createApp as createNodeApp } from '../../examples/node-orders/app.ts';
import { MemoryDatabase } from '../../examples/orders/database.ts';
import { orderKey } from '../../examples/orders/key.ts';
import { createServices } from '../../examples/orders/setup.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { until } from '../support/until.ts';
import { beside, Example, readOrder, ship, stopExamples } from './example.ts';

type Parts = Parameters<typeof createExpressApp>;

const frameworks = ['express-orders', 'koa-orders', 'fastify-orders', 'hono-orders', 'node-orders', 'nest-orders'];
const servers = frameworks.map((name) => `${name}/server.ts`);

describe.each(servers)('%s', (file) => {
  let example: Example;
  beforeAll(async () => {
    example = await Example.start(file);
  });
  afterAll(stopExamples);

  it('The shop ships no unit twice, however many requests arrive at once', async () => {
    const ids = [...Array<string>(12).fill('1'), ...Array<string>(3).fill('2')];
    const answers = await Promise.all(ids.map((id) => ship(example, id)));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(8).fill(201), ...Array(7).fill(409)]);
    const shipments = await Promise.all(
      answers.filter(({ status, url }) => status === 201 && url.includes('/1/')).map((answer) => answer.text()),
    );
    expect(shipments.sort()).toEqual(
      [1, 2, 3, 4, 5].map((shipped) => JSON.stringify({ shipped, stock: 5 - shipped, charged: shipped * 500 })),
    );
    expect(await readOrder(example, '1')).toEqual({ id: '1', shipped: 5, stock: 0, charged: 2_500, settled: 0 });
    expect(await readOrder(example, '2')).toEqual({ id: '2', shipped: 3, stock: 2, charged: 1_500, settled: 0 });
  });

  it('answers what its own services refuse with their status, and the trace id', async () => {
    for (let unit = 0; unit < 5; unit++) expect((await ship(example, '7')).status).toBe(201);
    const answer = await ship(example, '7');
    expect(answer.status).toBe(409);
    expect(answer.headers.get('x-trace-id')).toMatch(/^[0-9a-f]{32}$/);
    expect(await answer.json()).toEqual({ error: 'Nothing is left to ship' });
  });
});

describe.each([
  ['express-orders', (...parts: Parts) => createExpressApp(...parts)],
  ['koa-orders', (...parts: Parts) => createKoaApp(...parts).callback()],
  [
    'hono-orders',
    (...parts: Parts) => getRequestListener(createHonoApp(...parts).fetch, { overrideGlobalObjects: false }),
  ],
  ['node-orders', (...parts: Parts) => createNodeApp(...parts)],
])('%s/app.ts', (_, createHandler) => {
  it('has the order before its service is asked', async () => {
    const locks = createLocks();
    const { orders } = createServices(new MemoryDatabase());
    // By the services' own locks alone no two shipments would mix, either.
    jest.spyOn(orders, 'ship').mockImplementation(async (id) => {
      return { shipped: getLock(orderKey(id)).holdCount(), stock: 0, charged: 0 };
    });
    const { body } = await request(createHandler(orders, locks)).post('/orders/1/shipments').expect(201);
    expect(body).toMatchObject({ shipped: 1 });
    await locks.close();
  });
});

describe('on Redis', () => {
  let redis: RedisServer;
  let examples: Example[];
  beforeAll(async () => {
    redis = await startRedis();
    examples = await Promise.all(servers.map((file) => Example.start(file, { REDIS_URL: redis.url })));
  });
  afterAll(async () => {
    await stopExamples();
    await redis.stop();
  });

  it('processes of every framework ship no unit twice between them', async () => {
    const ids = ['1', '2', '3'];
    const requests = Array.from(
      { length: 36 },
      (_, index) => [examples[index % examples.length]!, ids[index % 3]!] as const,
    );
    const answers = await Promise.all(requests.map(([example, id]) => ship(example, id)));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(15);
    expect(statuses.filter((status) => status === 409)).toHaveLength(21);
    for (const id of ids)
      expect(await readOrder(examples[1]!, id)).toEqual({ id, shipped: 5, stock: 0, charged: 2_500, settled: 0 });
  });

  it.each(servers.slice(0, 2).map((file, n) => [file, n] as const))(
    '%s responds with 423 with Retry-After while another process holds the order',
    async (_, n) => {
      const example = examples[n]!;
      const id = String(8 + n);
      await beside(redis.url, async () => {
        await lock.acquire(orderKey(id));
        const answer = await ship(example, id);
        expect(answer.status).toBe(423);
        expect(Number(answer.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
        expect(await answer.json()).toEqual({ error: expect.stringContaining('not free'), code: 'ERR_LOCK_TIMEOUT' });
        await lock.release(orderKey(id));
        expect((await ship(example, id)).status).toBe(201);
      });
    },
  );

  // The last test of each of them.
  it.each(servers.map((file, n) => [file, n] as const))(
    '%s ends by itself on SIGTERM, and leaves no order locked',
    async (_, n) => {
      const example = examples[n]!;
      const client = new Redis(redis.url);
      const store = new RedisStore({ client });
      const holds = async (): Promise<number> => (await store.inspect(orderKey('5'))).holds.length;
      try {
        const answers = Array.from({ length: 40 }, () => ship(example, '5').catch(() => undefined));
        await until(holds, (count) => count > 0);
        example.kill('SIGTERM');
        expect(await example.exited).toMatchObject({ code: 0, stderr: '' });
        await Promise.all(answers);
        expect(await holds()).toBe(0);
      } finally {
        await client.quit();
      }
    },
  );
});
