import { configureLocks, lock, runInTrace } from 'reenlock';
import { processState } from '../../../src/core/base/process-state.ts';
import { gate } from '../../support/gate.ts';
import { describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

describeStyles('A configured Locks that is replaced', (framework) => {
  const { lockOn, traceContext } = framework;

  it('A newly configured Locks serves later requests and jobs alike, and running ones end with the one that they began with', async () => {
    const [go, entered] = [gate(), [gate(), gate()]];
    let count = 0;
    const stage = await ServerStage.start(framework, { bare: true }, (app) =>
      app.use(traceContext()).route('/x', lockOn('k'), async (call) => {
        entered[count++]?.open();
        await go;
        call.send({ isHeld: call.lock?.isHeld(), count: await lock.run('k', () => count) });
      }),
    );
    const first = configureLocks();
    try {
      const before = stage.get('/x', 'before');
      await entered[0];
      const second = configureLocks();
      try {
        const after = stage.get('/x', 'after');
        await entered[1];
        expect(await runInTrace(() => lock.tryAcquire('k'))).toBeNull();
        go.open();
        expect([(await before).body, (await after).body]).toEqual(Array(2).fill({ isHeld: true, count: 2 }));
        await first.close();
        expect((await stage.get('/x', 'later')).status).toBe(200);
      } finally {
        await second.close();
      }
    } finally {
      go.open();
      await first.close();
      processState().configured = undefined;
    }
  });

  it('A `traceContext` below one that uses the configured Locks may name the same Locks', async () => {
    const locks = configureLocks();
    try {
      const stage = await ServerStage.start(framework, { bare: true }, (app, stage) =>
        app.use(traceContext()).use(traceContext({ locks })).route('/x', lockOn('k'), stage.handler('x')),
      );
      expect((await stage.get('/x')).status).toBe(200);
    } finally {
      await locks.close();
      processState().configured = undefined;
    }
  });
});
