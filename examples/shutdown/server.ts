import express, { type Request } from 'express';
import { createLocks } from 'reenlock';
import { closeServer, lockOn, sendProblem, traceContext } from 'reenlock/express';
import { orderKey } from '../orders/key.ts';
import { listen } from '../orders/listen.ts';

const locks = createLocks();
locks.on('granted', ({ key }) => console.log(`${key} is held`));
locks.on('waiting', ({ key }) => console.log(`${key} has a waiter`));
locks.on('released', ({ key }) => console.log(`${key} is free`));

const app = express();
app.use(traceContext({ locks }));

const guard = lockOn((req: Request<{ id: string }>) => orderKey(req.params.id), { handler: sendProblem });

// An upload takes as long as its client takes: the order is locked all the while.
app.put('/orders/:id/invoice', guard, async (req, res) => {
  let bytes = 0;
  for await (const chunk of req) bytes += chunk.length;
  res.json({ bytes });
});

async function main(): Promise<void> {
  const server = await listen(app);
  const stop = async (): Promise<void> => {
    console.log('Shutting down');
    await closeServer(server, locks, { drainMs: 10_000 });
    // Nothing is left to do, and so the process ends by itself, with exit code 0.
    console.log('Closed');
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

void main();
