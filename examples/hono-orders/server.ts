import { getRequestListener } from '@hono/node-server';
import { closeServer } from 'reenlock/hono';
import { listen } from '../orders/listen.ts';
import { openShop } from '../orders/setup.ts';
import { createApp } from './app.ts';

async function main(): Promise<void> {
  const { orders, locks, close } = openShop();
  const server = await listen(getRequestListener(createApp(orders, locks).fetch));
  const stop = async (): Promise<void> => {
    // Who holds an order finishes, who waits for one gets 503: no order stays locked until its lease ends.
    await closeServer(server, locks, { drainMs: 5_000 });
    await close();
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

void main();
