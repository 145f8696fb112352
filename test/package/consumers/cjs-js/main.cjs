const assert = require('node:assert/strict');
const { once } = require('node:events');
const { setImmediate: turn } = require('node:timers/promises');
const Router = require('@koa/router');
const Koa = require('koa');
const { createLocks, getLock, MemoryStore } = require('reenlock');
const { lockOn, traceContext } = require('reenlock/koa');

const locks = createLocks({ store: new MemoryStore() });
const events = [];

const router = new Router();
router.post(
  '/orders/:id',
  lockOn((ctx) => ctx.params.id),
  async (ctx) => {
    events.push('enter');
    const order = getLock(ctx.params.id);
    await order.run(async (hold) => {
      assert.equal(hold.fence, ctx.state.lock.fence);
      // The first request stays until the second one is in the queue, or has wrongly come in.
      while (events.length === 1 && (await order.inspect()).waiters.length === 0) await turn();
    });
    events.push('leave');
    ctx.body = { fence: ctx.state.lock.fence };
  },
);

async function main() {
  const app = new Koa();
  app.use(traceContext({ locks }));
  app.use(router.routes());
  const server = app.listen(0);
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}/orders/42`;
  const answers = await Promise.all([1, 2].map(async () => (await fetch(url, { method: 'POST' })).json()));
  server.close();
  server.closeAllConnections();
  await locks.close();

  assert.deepEqual(events, ['enter', 'leave', 'enter', 'leave']);
  assert.notEqual(answers[0].fence, answers[1].fence);
  console.log('ok');
}

void main();
