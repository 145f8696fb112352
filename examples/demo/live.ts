import { setTimeout as sleep } from 'node:timers/promises';
import express, { type Request } from 'express';
import { createLocks, getLock } from 'reenlock';
import { closeServer, lockBoard, lockOn, traceContext } from 'reenlock/express';
import { listen, portOf } from '../orders/listen.ts';

const orders = ['42', '43', '44', '45'];

/** Shows the board of a server that always has requests, some of which wait for each other, until the process is stopped. */
export async function showBoard(): Promise<void> {
  const locks = createLocks();
  const app = express();
  // Every visitor of this port may look and release: it is on loopback, and there is nothing to lose.
  app.use('/locks', lockBoard({ locks, authorize: () => ({ name: 'you', mayForceRelease: true }) }));
  app.use(traceContext({ locks }));
  const guard = lockOn((req: Request<{ id: string }>) => `order:${req.params.id}`, { category: 'orders' });
  app.post('/orders/:id', guard, async (req, res) => {
    await sleep(500 + 3_000 * Math.random());
    await getLock(`stock:${req.params.id}`).run(() => sleep(500));
    res.sendStatus(204);
  });
  // Any free port: another server may have the usual one.
  process.env.PORT ??= '0';
  const server = await listen(app);
  const url = `http://127.0.0.1:${portOf(server)}`;
  console.log(` Locks that move, live: ${url}/locks/   (Ctrl-C ends it)`);

  let isOver = false;
  const visit = async (index: number): Promise<void> => {
    while (!isOver) {
      await sleep(1_000 * Math.random());
      if (!isOver) await fetch(`${url}/orders/${orders[index % orders.length]}`, { method: 'POST' });
    }
  };
  // From the start: a visit that comes as the server closes may fail before anybody waits for it.
  const visitors = Promise.allSettled(Array.from({ length: 9 }, (_, index) => visit(index)));
  await new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, resolve);
  });
  isOver = true;
  await closeServer(server, locks, { drainMs: 5_000 });
  await visitors;
}
