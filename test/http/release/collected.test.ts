import { setImmediate as nextRound } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { Hold } from 'reenlock';
import { describeFrameworks } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

describeFrameworks('What is left of a request', (framework) => {
  const { lockOn, traceContext } = framework;

  it('A hold that outlives its request does not keep the request in memory', async () => {
    const holds: (Hold | undefined)[] = [];
    const requests: WeakRef<object>[] = [];
    const stage = await ServerStage.start(framework, { bare: true }, (app, { locks }) => {
      app.use(traceContext({ locks, serverTiming: true })).route('/x', lockOn('k'), (call) => {
        holds.push(call.lock);
        requests.push(new WeakRef(call.req));
        call.send('in');
      });
    });
    for (let i = 0; i < 10; i += 1) expect((await stage.get('/x')).status).toBe(200);
    await stage.until('released first k', 10);
    await nextRound();
    collectGarbage();
    expect(holds.map((hold) => hold?.key)).toEqual(new Array(10).fill('k'));
    // Frameworks and Node keep the first or the last one.
    expect(requests.filter((request) => request.deref() !== undefined).length).toBeLessThan(3);
  });
});
