import { setTimeout as sleep } from 'node:timers/promises';
import { lock, runInTrace } from 'reenlock';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { type App, describeFrameworks } from '../../support/http/frameworks.ts';
import { ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';

describeFrameworks('Server-Timing', (framework) => {
  const { lockOn, middleware, traceContext } = framework;

  const start = (build: (app: App) => unknown, options: ServerStageOptions = {}, serverTiming = true) =>
    ServerStage.start(
      framework,
      {
        ...options,
        bare: true,
      },
      (app, stage) => build(app.use(traceContext({ locks: stage.locks, serverTiming }))),
    );
  const timingOf = (response: { headers: Record<string, string> }) => response.headers['server-timing'];

  it('Server-Timing shows how long the guards of a request waited in all, without a key', async () => {
    const clock = new ManualClock();
    const stage = await start(
      (app) =>
        app.route(
          '/x',
          lockOn('secret-a'),
          lockOn(() => ['secret-a', 'secret-b']),
          (call) => call.send('in'),
        ),
      { clock, waitMs: Number.POSITIVE_INFINITY },
    );
    const [freeA, freeB] = [gate(), gate()];
    const holders = (['secret-a', 'secret-b'] as const).map((key, i) =>
      runInTrace(() => lock.run(key, () => [freeA, freeB][i]), { locks: stage.locks, traceId: `holder-${i}` }),
    );
    await stage.until('granted holder-1 secret-b');
    const response = stage.get('/x');
    await stage.until('waiting first secret-a');
    await clock.advance(100);
    freeA.open();
    await stage.until('waiting first secret-b');
    await clock.advance(23.44);
    freeB.open();
    expect(timingOf(await response)).toBe('lock;dur=123.4');
    await Promise.all(holders);
  });

  it('Server-Timing shows the wait of a refused request as well', async () => {
    const clock = new ManualClock();
    const stage = await start((app) => app.route('/x', lockOn('k', { waitMs: 50 }), (call) => call.send('in')), {
      clock,
    });
    const free = gate();
    const holder = runInTrace(() => lock.run('k', () => free), { locks: stage.locks, traceId: 'holder' });
    await stage.until('granted holder k');
    const response = stage.get('/x');
    await stage.until('waiting first k');
    await clock.advance(50);
    const { status, headers } = await response;
    expect([status, headers['server-timing']]).toEqual([423, 'lock;dur=50.0']);
    free.open();
    await holder;
  });

  it.each(['before the guard', 'after the guard'])(
    'Server-Timing keeps the metrics that the application sets %s',
    async (place) => {
      const stage = await start((app) => {
        const own = middleware(({ res }, next) => {
          const [before = []] = [res.getHeader('Server-Timing')];
          res.setHeader('Server-Timing', [before, 'db;dur=5'].flat() as string[]);
          return next();
        });
        const steps = place === 'before the guard' ? [own, lockOn('k')] : [lockOn('k'), own];
        app.route('/x', ...steps, (call) => call.send('in'));
      });
      const metrics = timingOf(await stage.get('/x'))
        ?.split(', ')
        .sort();
      expect(metrics).toEqual(['db;dur=5', expect.stringMatching(/^lock;dur=\d+\.\d$/)]);
    },
  );

  it('Server-Timing stays if other code has replaced the header, and is sent with a streamed response', async () => {
    const stage = await start((app) =>
      app
        .route('/replaced', lockOn('k'), (call) => {
          call.res.setHeader('Server-Timing', 'db;dur=5');
          call.send('in');
        })
        .route('/streamed', lockOn('k'), async (call) => {
          call.detach();
          call.res.write('first');
          await sleep(1);
          call.res.end('second');
        }),
    );
    expect(timingOf(await stage.get('/replaced'))).toMatch(/^db;dur=5, lock;dur=\d+\.\d$/);
    expect(timingOf(await stage.get('/streamed'))).toMatch(/^lock;dur=\d+\.\d$/);
  });

  it('Server-Timing is sent only by guarded routes, and only if it is turned on', async () => {
    const build = (app: App) =>
      app.route('/free', (call) => call.send('in')).route('/x', lockOn('k'), (call) => call.send('in'));
    const stages = [await start(build), await start(build, {}, false)];
    const timings = stages
      .flatMap((stage) => [stage.get('/free'), stage.get('/x')])
      .map(async (it) => timingOf(await it));
    const given = expect.stringMatching(/^lock;dur=/);
    expect(await Promise.all(timings)).toEqual([undefined, given, undefined, undefined]);
  });
});
