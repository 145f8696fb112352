import { setTimeout as sleep } from 'node:timers/promises';
import { closeServer } from 'reenlock/express';
import { createApp } from '../express-orders/app.ts';
import { listen } from '../orders/listen.ts';
import { openShop } from '../orders/setup.ts';
import { settleOrders } from './settlement.ts';

/** The order service with its nightly settlement in the same process; nights are short here. */
async function main(): Promise<void> {
  const { orders, payments, locks, close } = openShop();
  const server = await listen(createApp(orders, locks));
  const stop = new AbortController();
  // Not after the round's end: it may wait for a Redis that is away. Its lock is waited for with those of requests.
  const shutDown = async (): Promise<void> => {
    stop.abort();
    await closeServer(server, locks, { drainMs: 5_000 });
    await close();
  };
  process.once('SIGTERM', shutDown);
  process.once('SIGINT', shutDown);

  while (!stop.signal.aborted) {
    // A round that fails, as while Redis is away, is done again by the next; the server goes on.
    await settleOrders(payments, locks, stop.signal).catch((error) => console.error(error));
    await sleep(Number(process.env.NIGHT_MS ?? 1_000), undefined, { signal: stop.signal }).catch(() => {});
  }
}

void main();
