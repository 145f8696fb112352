import { connect } from '../lib/connect.mjs';
import { CountingRedis } from './counting-redis.mjs';
import { ordersApp } from './orders.mjs';

/** What may stand before the handler: `create({ client })` → `{ context, guard?, close? }`. */
const apps = {
  'cls-rtracer alone': async () => (await import('./tracer-alone.mjs')).create,
  'hand-written guard': async () => (await import('./hand-written-guard.mjs')).create,
  'reenlock guard': async () => (await import('./reenlock-guard.mjs')).create,
};

/** Builds the application of that name; with a `port`, its locks live in that Redis, else in memory. */
export async function openApp(name, { port }) {
  const create = await apps[name]();
  const client = port && (await connect(port, CountingRedis));
  const { context, guard, close } = await create({ client });
  return {
    ...ordersApp({ context, guard, client }),
    async close() {
      await close?.();
      await client?.quit();
    },
  };
}
