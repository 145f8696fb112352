import express, { type Request } from 'express';
import { getLock } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import { orderKey } from '../orders/key.ts';
import { Bank } from './bank.ts';
import { callService } from './call-service.ts';
import { needed, serve } from './setup.ts';

const priceCents = 500;

/** Ships orders, in Express. Holds the order while the payment service charges it. */
function createApp() {
  const payments = needed('PAYMENTS_URL');
  const chargesOf = (id: string): string => `${payments}/orders/${encodeURIComponent(id)}/charges`;
  const bank = new Bank(needed('BANK_URL'));
  const app = express();
  app.use(traceContext({ trust: 'internal' }));

  const guard = lockOn((req: Request<{ id: string }>) => orderKey(req.params.id));

  app.post('/orders/:id/shipments', guard, async (req, res) => {
    const { id } = req.params;
    const charge = await callService(chargesOf(id), { method: 'POST' }).catch(() => undefined);
    if (charge?.ok) return void res.status(201).json({ fence: req.lock?.fence, charge: await charge.json() });
    // Refused, or cut off before its answer. The order stays held until we know what was charged.
    res.status(502).json({ charged: await bank.wasCharged(id) });
  });

  // Asked by the payment service, in the midst of a shipment: the trace comes back in, and does not wait for itself.
  app.get('/orders/:id/total', async (req, res) => {
    const { id } = req.params;
    res.json(await getLock(orderKey(id)).run(({ fence }) => ({ cents: priceCents, fence })));
  });

  return app;
}

void serve(createApp());
