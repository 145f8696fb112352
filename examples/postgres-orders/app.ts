import express, { type Express, type Request } from 'express';
import type { Locks } from 'reenlock';
import { lockOn, sendProblem, traceContext } from 'reenlock/express';
import { orderKey } from '../orders/key.ts';
import type { Order } from './order-service.ts';

/** What keeps the orders, in any database. */
export interface Orders {
  ship(id: string): Promise<Order>;
  view(id: string): Promise<Order | undefined>;
}

export function createApp(orders: Orders, locks: Locks): Express {
  const app = express();
  app.use(traceContext({ locks }));
  const guard = lockOn((req: Request<{ id: string }>) => orderKey(req.params.id));

  // The guard takes the order's lock, the service re-enters it.
  app.post('/orders/:id/shipments', guard, async (req, res) => {
    res.status(201).json(await orders.ship(req.params.id));
  });
  app.get('/orders/:id', async (req, res) => {
    res.json((await orders.view(req.params.id)) ?? null);
  });
  app.use(sendProblem);
  return app;
}
