import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { isLockError, type Locks } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/node';
import { orderKey } from '../orders/key.ts';
import type { OrderService } from '../orders/order-service.ts';

type Handler = (id: string, res: ServerResponse) => Promise<void>;

/** The Express service without a framework: the middleware comes from `reenlock/node`, the services are the same. */
export function createApp(orders: OrderService, locks: Locks): RequestListener {
  const trace = traceContext({ locks });
  const guard = lockOn((req) => orderKey(idOf(req)));

  // The guard takes the order's lock; the three services below re-enter it; it is released with the answer.
  const ship: Handler = async (id, res) => send(res, 201, await orders.ship(id));

  // No guard: the service takes the lock, for as long as it reads.
  const view: Handler = async (id, res) => send(res, 200, await orders.view(id));

  // First, so that every lock below belongs to its request.
  return (req, res) =>
    trace(req, res, () => {
      const run = (handler: Handler): unknown => handler(idOf(req), res).catch((error) => answerError(error, res));
      const path = req.url?.replace(/\d+/, ':id');
      if (req.method === 'GET' && path === '/orders/:id') return run(view);
      if (req.method !== 'POST' || path !== '/orders/:id/shipments') return send(res, 404, { error: 'Not found' });
      return guard(req, res, (error) => (error === undefined ? run(ship) : answerError(error, res)));
    });
}

function idOf({ url = '' }: IncomingMessage): string {
  return /^\/orders\/(\d+)/.exec(url)?.[1] ?? '';
}

/** 423 with Retry-After where an order was not free in time, 409 where nothing was left, both as JSON. */
function answerError(error: unknown, res: ServerResponse): void {
  const {
    expose,
    status = 500,
    message,
    code,
  } = error as Partial<Error & Record<'status', number> & { expose: boolean; code: string }>;
  if (isLockError(error)) res.setHeaders(new Map(Object.entries(error.headers)));
  send(res, status, expose === true ? { error: message, code } : { error: 'The server has failed' });
}

function send(res: ServerResponse, status: number, body: unknown): void {
  res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}
