import Router from '@koa/router';
import Koa from 'koa';
import { lockOn, traceContext } from 'reenlock/koa';
import { takeUnit } from './stock.ts';

const app = new Koa();
const router = new Router();
const guard = lockOn((ctx) => `order:${ctx.params.id}`);

router.post('/orders/:id/units', guard, async (ctx) => {
  ctx.body = { units: await takeUnit(ctx.params.id as string) };
});
app.use(traceContext()); // each request is one owner
app.use(router.routes());

const port = Number(process.env.PORT ?? 3000);
app.listen(port, () => console.log(`Listening on http://127.0.0.1:${port}`));
