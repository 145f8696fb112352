import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import Router from '@koa/router';
import Koa from 'koa';
import { createLocks, getLock, type Hold, MemoryStore } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/koa';

const locks = createLocks({ store: new MemoryStore() });
const events: string[] = [];

const router = new Router();
router.post(
  '/orders/:id',
  lockOn((ctx) => ctx.params.id),
  async (ctx) => {
    events.push('enter');
    const order = getLock(ctx.params.id ?? '');
    await order.run(async (hold: Hold) => {
      assert.equal(hold.fence, ctx.state.lock?.fence);
      // The first request stays until the second one is in the queue, or has wrongly come in.
      while (events.length === 1 && (await order.inspect()).waiters.length === 0) await turn();
    });
    events.push('leave');
    ctx.body = { id: ctx.params.id };
  },
);

const app = new Koa();
app.use(traceContext({ locks }));
app.use(router.routes());
const server = app.listen(0);
await once(server, 'listening');
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders/42`;
const answers = await Promise.all([1, 2].map(async () => (await fetch(url, { method: 'POST' })).json()));
server.close();
server.closeAllConnections();
await locks.close();

assert.deepEqual(events, ['enter', 'leave', 'enter', 'leave']);
assert.deepEqual(answers, [{ id: '42' }, { id: '42' }]);
console.log('ok');
