import Router from '@koa/router';
import Koa, { type Middleware } from 'koa';
import { isLockError, type Locks } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/koa';
import { orderKey } from '../orders/key.ts';
import type { OrderService } from '../orders/order-service.ts';

/** The Express service, ported: the middleware comes from `reenlock/koa`, the services are the same. */
export function createApp(orders: OrderService, locks: Locks): Koa {
  const app = new Koa();
  // First, so that every lock below belongs to its request.
  app.use(traceContext({ locks }));
  app.use(answerError);

  const router = new Router();
  const guard = lockOn((ctx) => orderKey(ctx.params.id!));

  // The guard takes the order's lock; the three services below re-enter it; it is released with the answer.
  router.post('/orders/:id/shipments', guard, async (ctx) => {
    ctx.status = 201;
    ctx.body = await orders.ship(ctx.params.id!);
  });

  // No guard: the service takes the lock, for as long as it reads.
  router.get('/orders/:id', async (ctx) => {
    ctx.body = await orders.view(ctx.params.id!);
  });

  app.use(router.routes());
  return app;
}

/** 423 with Retry-After where an order was not free in time, 409 where nothing was left, both as JSON. */
const answerError: Middleware = async (ctx, next) => {
  try {
    await next();
  } catch (error) {
    const known = error as { expose?: boolean; status: number; message: string; code?: string };
    if (known.expose !== true) throw error;
    if (isLockError(error)) ctx.set(error.headers);
    ctx.status = known.status;
    ctx.body = { error: known.message, code: known.code };
  }
};
