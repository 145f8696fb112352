import { schedule } from 'node-cron';
import { lock, runInTrace } from 'reenlock';
import { closeServer } from 'reenlock/express';
import { createApp } from '../express-orders/app.ts';
import { settleOrders } from '../job/settlement.ts';
import { listen } from '../orders/listen.ts';
import { openShop } from '../orders/setup.ts';

const { orders, payments, locks, close } = openShop();
locks.on('waiting', ({ key }) => console.log(`waits for ${key}`));
const stop = new AbortController();

/** Every instance of the service has this clock: the one that gets the round's lock does the round. */
function settleInTurn(): Promise<void> {
  return runInTrace(
    async () => {
      const round = await lock.tryAcquire('settlement');
      if (round === null) return console.log('settlement: another instance has this round');
      // A job within the job, for the same trace; it stops with this one.
      await settleOrders(payments, locks, stop.signal);
    },
    { locks, signal: stop.signal },
  );
}

async function main(): Promise<void> {
  const server = await listen(createApp(orders, locks));
  // `noOverlap`: a round that takes longer than the interval is not followed by one beside it.
  const task = schedule(process.env.SCHEDULE ?? '0 3 * * *', settleInTurn, { noOverlap: true });
  const shutDown = async (): Promise<void> => {
    await task.destroy();
    stop.abort();
    await closeServer(server, locks, { drainMs: 5_000 });
    await close();
  };
  process.once('SIGTERM', shutDown);
  process.once('SIGINT', shutDown);
}

void main();
