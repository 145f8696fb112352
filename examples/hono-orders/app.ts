import { Hono } from 'hono';
import { isLockError, type Locks } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/hono';
import { orderKey } from '../orders/key.ts';
import type { OrderService } from '../orders/order-service.ts';

/** The Express service, ported: the middleware comes from `reenlock/hono`, the services are the same. */
export function createApp(orders: OrderService, locks: Locks): Hono {
  const app = new Hono();
  // First, so that every lock below belongs to its request.
  app.use(traceContext({ locks }));

  const guard = lockOn((c) => orderKey(c.req.param('id')!));

  // The guard takes the order's lock; the three services below re-enter it; it is released with the answer.
  app.post('/orders/:id/shipments', guard, async (c) => c.json(await orders.ship(c.req.param('id')), 201));

  // No guard: the service takes the lock, for as long as it reads.
  app.get('/orders/:id', async (c) => c.json(await orders.view(c.req.param('id'))));

  // 423 with Retry-After where an order was not free in time, 409 where nothing was left, both as JSON.
  app.onError((error, c) => {
    const {
      expose,
      status = 500,
      message,
      code,
    } = error as Partial<{ expose: boolean; status: number; code: string }> & Error;
    if (expose !== true) return c.json({ error: 'The server has failed' }, 500);
    return c.json({ error: message, code }, status as 409, isLockError(error) ? error.headers : {});
  });
  return app;
}
