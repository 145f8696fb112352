import { Worker } from 'bullmq';
import { currentTrace, runInTrace } from 'reenlock';
import { openShop } from '../orders/setup.ts';
import { connection, queueName, redisUrl, type Settlement } from './queue.ts';

const { payments, locks, close } = openShop(redisUrl());
locks.on('waiting', ({ key }) => console.log(`waits for ${key}`));

/**
 * Settles one order. It waits for the requests and jobs that have the order; the signal, which is aborted when BullMQ
 * cancels the job, ends that. The trace is one of its own for each attempt: BullMQ may run a stalled job a second time
 * beside the first, and with one trace both would be in.
 */
const worker = new Worker<Settlement>(
  queueName,
  ({ data: { order } }, _token, signal) =>
    runInTrace(
      async () => {
        const cents = await payments.settle(order, { waitMs: 30_000 }); // more patient than a client
        console.log(`job ${currentTrace()?.traceId}: order ${order}, ${cents} cents`);
      },
      { locks, signal },
    ),
  { connection: connection() },
);
worker.on('ready', () => console.log('Working'));
worker.on('failed', (job, error) => console.log(`order ${job?.data.order} is put back: ${error.message}`));
worker.on('error', (error) => console.error(error));

async function stop(): Promise<void> {
  // BullMQ waits for a Redis that is away, however long. Unref'd: it keeps nobody alive who is done before.
  setTimeout(() => process.exit(1), 5_000).unref();
  const closed = worker.close(); // takes no more jobs
  worker.cancelAllJobs('shutting down'); // ends their waits; who holds an order finishes
  await closed;
  await close();
}
process.once('SIGTERM', stop);
process.once('SIGINT', stop);
