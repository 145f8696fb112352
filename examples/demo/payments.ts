import express, { type Express, type Request } from 'express';
import type { Locks } from 'reenlock';
import { traceContext } from 'reenlock/express';
import type { Database } from '../orders/database.ts';
import { PaymentService } from '../orders/payment-service.ts';
import { priceCents } from '../orders/setup.ts';
import { callService } from '../two-services/call-service.ts';

/** The payment service as an application of its own. Below a request that holds the order, it re-enters its lock. */
export function createPaymentsApp(payments: PaymentService, locks: Locks): Express {
  const app = express();
  app.use(traceContext({ locks }));
  app.post('/orders/:id/charges', async (req: Request<{ id: string }>, res) => {
    res.json({ charged: await payments.charge(req.params.id) });
  });
  return app;
}

/** What the order service has of it: to charge is a call over HTTP. */
export class RemotePayments extends PaymentService {
  readonly #url: string;

  constructor(database: Database, url: string) {
    super(database, priceCents);
    this.#url = url;
  }

  override async charge(id: string): Promise<number> {
    const response = await callService(`${this.#url}/orders/${id}/charges`, { method: 'POST' });
    if (!response.ok) throw new Error(`The payment service responded with ${response.status}`);
    return ((await response.json()) as { charged: number }).charged;
  }
}
