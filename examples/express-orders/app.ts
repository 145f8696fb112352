import express, { type ErrorRequestHandler, type Express, type Request } from 'express';
import { isLockError, type Locks } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import { orderKey } from '../orders/key.ts';
import type { OrderService } from '../orders/order-service.ts';

export function createApp(orders: OrderService, locks: Locks): Express {
  const app = express();
  // First, so that every lock below belongs to its request.
  app.use(traceContext({ locks }));

  const guard = lockOn((req: Request<{ id: string }>) => orderKey(req.params.id));

  // The guard takes the order's lock; the three services below re-enter it; it is released with the answer.
  // Express 5 hands a rejection to `answerError`. Express 4 does not: catch it there, and call `next(error)`.
  app.post('/orders/:id/shipments', guard, async (req, res) => {
    res.status(201).json(await orders.ship(req.params.id));
  });

  // No guard: the service takes the lock, for as long as it reads.
  app.get('/orders/:id', async (req, res) => {
    res.json(await orders.view(req.params.id));
  });

  app.use(answerError);
  return app;
}

/** 423 with Retry-After where an order was not free in time, 409 where nothing was left, both as JSON. */
const answerError: ErrorRequestHandler = (error, _req, res, next) => {
  if (res.headersSent || error.expose !== true) return next(error);
  if (isLockError(error)) res.set(error.headers);
  res.status(error.status).json({ error: error.message, code: error.code });
};
