import Router from '@koa/router';
import Koa from 'koa';
import { lockOn, traceContext } from 'reenlock/koa';
import { orderKey } from '../orders/key.ts';
import { Bank } from './bank.ts';
import { callService } from './call-service.ts';
import { needed, serve } from './setup.ts';

/** Charges orders, in Koa. Locks the order whoever calls: the order service's trace re-enters, anybody else waits. */
function createApp() {
  const orders = needed('ORDERS_URL');
  const bank = new Bank(needed('BANK_URL'));
  const app = new Koa();
  // Only the order service may bring its trace: here, whoever calls from within the network.
  app.use(traceContext({ trust: 'internal' }));

  const router = new Router();
  const guard = lockOn((ctx) => orderKey(ctx.params.id!));

  router.post('/orders/:id/charges', guard, async (ctx) => {
    const id = ctx.params.id!;
    const answer = await callService(`${orders}/orders/${encodeURIComponent(id)}/total`);
    if (!answer.ok) throw new Error(`The order service answered ${answer.status}`);
    const total = (await answer.json()) as { cents: number };
    await bank.charge(id, total.cents);
    ctx.status = 201;
    ctx.body = { fence: ctx.state.lock?.fence, total };
  });

  app.use(router.routes());
  return app;
}

void serve(createApp().callback());
