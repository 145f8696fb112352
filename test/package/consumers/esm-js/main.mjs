import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import express from 'express';
import { createLocks, getLock, MemoryStore } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';

const locks = createLocks({ store: new MemoryStore() });
const events = [];

const app = express();
app.use(traceContext({ locks }));
app.post(
  '/orders/:id',
  lockOn((r) => r.params.id),
  async (req, res) => {
    events.push('enter');
    const order = getLock(req.params.id);
    await order.run(async (hold) => {
      assert.equal(hold.fence, req.lock.fence);
      // The first request stays until the second one is in the queue, or has wrongly come in.
      while (events.length === 1 && (await order.inspect()).waiters.length === 0) await turn();
    });
    events.push('leave');
    res.json({ fence: req.lock.fence });
  },
);

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
