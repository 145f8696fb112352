import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { lockOn, sendProblem, traceContext } from 'reenlock/hono';
import { takeUnit } from './stock.ts';

const app = new Hono();
const guard = lockOn((c) => `order:${c.req.param('id')}`);

app.use(traceContext()); // each request is one owner
app.post('/orders/:id/units', guard, async (c) => {
  return c.json({ units: await takeUnit(c.req.param('id')) });
});
app.onError(sendProblem); // 423 with Retry-After when the lock is busy

const port = Number(process.env.PORT ?? 3000);
serve({ fetch: app.fetch, port }, () => console.log(`Listening on http://127.0.0.1:${port}`));
