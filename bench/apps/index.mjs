import { connect } from '../lib/connect.mjs';
import { CountingRedis } from './counting-redis.mjs';
import { ordersApp } from './orders.mjs';

/** What may stand before the handler: each file has `create({ client, from })` → `{ context, guard?, close? }`. */
const apps = {
  'cls-rtracer alone': 'tracer-alone',
  'hand-written guard': 'hand-written-guard',
  'reenlock guard': 'reenlock-guard',
};

/** Builds the application of that name. If there is a Redis server, its locks live there, and in memory otherwise. */
export async function openApp(name, { redis }) {
  const isBefore = name.endsWith(' before');
  const { create } = await import(`./${apps[name.replace(/ before$/, '')]}.mjs`);
  const client = redis === undefined ? undefined : await connect(redis, CountingRedis);
  const { context, guard, close } = await create({ client, from: isBefore ? process.env.BENCH_BEFORE : undefined });
  return {
    ...ordersApp({ context, guard, client }),
    async close() {
      await close?.();
      await client?.quit();
    },
  };
}
