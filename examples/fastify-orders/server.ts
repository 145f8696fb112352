import { closeServer } from 'reenlock/fastify';
import { openShop } from '../orders/setup.ts';
import { createApp } from './app.ts';

async function main(): Promise<void> {
  const { orders, locks, close } = openShop();
  const app = createApp(orders, locks);
  const stop = async (): Promise<void> => {
    // Who holds an order finishes, who waits for one gets 503: no order stays locked until its lease ends.
    await closeServer(app, locks, { drainMs: 5_000 });
    await close();
  };
  console.log(`Listening on ${await app.listen({ port: Number(process.env.PORT ?? 3000), host: '127.0.0.1' })}`);
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

void main();
