import fastify, { type FastifyInstance } from 'fastify';
import { isLockError, type Locks } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/fastify';
import { orderKey } from '../orders/key.ts';
import type { OrderService } from '../orders/order-service.ts';

/** The Express service, ported: the plugin and the hook come from `reenlock/fastify`, the services are the same. */
export function createApp(orders: OrderService, locks: Locks): FastifyInstance {
  const app = fastify();
  // First, so that every lock below belongs to its request.
  app.register(traceContext({ locks }));
  app.setErrorHandler(answerError);

  const guard = lockOn((request) => orderKey(request.params.id!));

  // The guard takes the order's lock; the three services below re-enter it; it is released with the answer.
  app.post<{ Params: { id: string } }>('/orders/:id/shipments', { preHandler: guard }, async (request, reply) => {
    reply.code(201);
    return orders.ship(request.params.id);
  });

  // No guard: the service takes the lock, for as long as it reads.
  app.get<{ Params: { id: string } }>('/orders/:id', (request) => orders.view(request.params.id));

  return app;
}

/** 423 with Retry-After where an order was not free in time, 409 where nothing was left, both as JSON. */
const answerError: Parameters<FastifyInstance['setErrorHandler']>[0] = (error, _request, reply) => {
  const known = error as { expose?: boolean; status: number; message: string; code?: string };
  if (known.expose !== true) throw error;
  if (isLockError(error)) reply.headers(error.headers);
  reply.code(known.status).send({ error: known.message, code: known.code });
};
