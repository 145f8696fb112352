import { type DeadlockError, getLock, lock, runInTrace } from 'reenlock';
import request from 'supertest';
import { systemClock } from '../../../src/core/base/clock.ts';
import { gate } from '../../support/gate.ts';
import { type App, describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { FakeStore } from '../../support/stores/fake-store.ts';

describeStyles('A deadlock of requests', (framework) => {
  it('Two requests that guard two keys in opposite order end with one 409 and one 200', async () => {
    const { lockOn } = framework;
    const both = [gate(), gate()] as const;
    const route = (app: App, from: 0 | 1, to: 0 | 1): App => {
      const second = async (): Promise<string> => {
        both[from].open();
        await both[to];
        return `k${to}`;
      };
      return app.route(`/${from}`, lockOn(`k${from}`), lockOn(second), (call) => call.send('moved'));
    };
    const cycles: DeadlockError['cycle'][] = [];
    const stage = await ServerStage.start(framework, (app, { locks }) => {
      locks.on('deadlock', ({ cycle }) => void cycles.push(cycle));
      app.onError((error, call) => {
        call.res.statusCode = error.status ?? 500;
        call.res.end(error.message);
      });
      route(route(app, 0, 1), 1, 0);
    });
    const answers = await Promise.all([stage.get('/0', 'first'), stage.get('/1', 'second')]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect(answers.find(({ status }) => status === 409)?.text).not.toMatch(/k0|k1|first|second/);
    expect(cycles).toHaveLength(1);
    expect(cycles[0]!.map(({ traceId, key }) => `${traceId} ${key}`).sort()).toEqual(['first k1', 'second k0']);
  });

  it.each([
    ['it came with its trace id', { 'X-Trace-Id': 'caller' }, 1],
    ['not where its trace is its own', {}, 0],
    ['not where the id that it came with is not trusted', { 'X-Trace-Id': 'client', 'X-Forwarded-For': '8.8.8.8' }, 0],
  ])(
    'A request that waits and holds nothing takes part in the search for deadlocks if %s',
    async (_, headers, edges) => {
      const store = new FakeStore(systemClock);
      const build = (app: App): App => app.route('/x', framework.lockOn('key'), (call) => call.send('in'));
      const stage = await ServerStage.start(framework, { store }, build);
      const answer = await runInTrace(
        async () => {
          const hold = await lock.acquire('key');
          const sent = request(stage.server).get('/x').set(headers).then();
          while ((await getLock('key').inspect()).waiters.length === 0) await new Promise(setImmediate);
          await new Promise(setImmediate);
          await hold.release();
          return sent;
        },
        { locks: stage.locks },
      );
      expect(answer.status).toBe(200);
      expect(store.count('setEdge')).toBe(edges);
    },
  );
});
