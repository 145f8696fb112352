import express, { type Express, type Request } from 'express';
import type { Locks } from 'reenlock';
import { lockOn, sendProblem, traceContext } from 'reenlock/express';
import { orderKey } from '../orders/key.ts';
import type { OrderService } from './order-service.ts';

export function createApp(orders: OrderService, locks: Locks): Express {
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
