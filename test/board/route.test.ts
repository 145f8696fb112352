import { lock } from 'reenlock';
import { lockDetails } from '../../src/board/lock-details.ts';
import { checkedName } from '../../src/core/model/key.ts';
import { runtimeOf } from '../../src/core/runtime/locks.ts';
import { gate } from '../support/gate.ts';
import { type Call, describeStyles } from '../support/http/frameworks.ts';
import { ServerStage } from '../support/http/server-stage.ts';

describeStyles('the board shows routes:', (framework) => {
  // Plain Node has no router to ask.
  const route = framework.adapter === 'node' ? undefined : 'GET /orders/:id';

  it('The panel names the route of each request of its process that holds the key, or waits for it', async () => {
    const go = gate();
    const handler = (call: Call) => lock.run('nested', () => go).then(() => call.send('done'));
    const stage = await ServerStage.start(framework, (app) => {
      app.route('/orders/:id', framework.lockOn('k'), handler);
    });
    const requests = [stage.get('/orders/1', 'first')];
    await stage.until('granted first nested');
    requests.push(stage.get('/orders/2', 'second'));
    await stage.until('waiting second k');
    const detailsOf = (key: string) => lockDetails(runtimeOf(stage.locks), checkedName(key, undefined));
    const { holds, waiters } = await detailsOf('k');
    expect([...holds, ...waiters].map((each) => each.route)).toEqual([route, route]);
    expect((await detailsOf('nested')).holds.map((each) => each.route)).toEqual([route]);
    go.open();
    await Promise.all(requests);
  });
});
