import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { describeFrameworks } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

describeFrameworks('Middleware before a guard', (framework) => {
  const { lockOn } = framework;
  afterEach(ServerStage.endAll);

  it('A request to which earlier middleware responds, as a rate limit does, neither holds nor waits', async () => {
    const contest = await Contest.through(framework, (app, work, stage) => {
      const limit = framework.middleware((call, next) =>
        call.req.headers['x-trace-id'] === 'third' ? call.send('slow down', 429) : next(),
      );
      app.route('/first', limit, lockOn('k'), async (call) => {
        await work();
        stage.note(`in: ${call.req.headers['x-trace-id']}`);
        call.send('first');
      });
    });
    const { status, text, headers } = await contest.stage.get('/first', 'third');
    expect([status, text, headers['x-trace-id']]).toEqual([429, 'slow down', 'third']);
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/first$/);
    expect(contest.stage.journal.filter((line) => line.includes('third'))).toEqual([]);
  });

  if (framework.style === 'callback') {
    it('A request to which earlier middleware responds, and passes on by mistake, is not queued, and its handler does not run', async () => {
      const contest = await Contest.through(framework, (app, work, stage) => {
        const limit = framework.middleware((call, next) => {
          if (call.req.headers['x-trace-id'] === 'third') call.send('slow down', 429);
          next();
        });
        app
          .route('/first', limit, lockOn('k'), async (call) => {
            stage.note(`in: ${call.req.headers['x-trace-id']}`);
            await work();
            call.send('first');
          })
          .route('/free', limit, lockOn('free'), () => stage.note('in: third'));
      });
      for (const path of ['/first', '/free']) expect((await contest.stage.get(path, 'third')).status).toBe(429);
      await contest.expectHeldUntilGo();
      await contest.expectAnswer(/first$/);
      expect(contest.stage.journal).not.toContain('in: third');
      await contest.stage.free('free');
    });
  }

  it('Nothing is held or queued before an asynchronous key function has resolved', async () => {
    const known = gate();
    const stage = await ServerStage.start(framework, (app, stage) =>
      app
        .route(
          '/slow/:id',
          lockOn(async (call) => {
            stage.note('looking up');
            await known;
            return call.params.id;
          }),
          stage.handler('slow'),
        )
        .route('/quick', lockOn('k'), async (call) => {
          stage.note('quick in');
          await stage.until('waiting slow k');
          expect([await stage.holder('k'), await stage.waiters('k')]).toEqual(['quick', ['slow']]);
          call.send('quick');
        }),
    );
    const slow = stage.get('/slow/k', 'slow');
    await stage.until('looking up');
    const quick = stage.get('/quick', 'quick');
    await stage.until('quick in');
    expect([await stage.holder('k'), await stage.waiters('k')]).toEqual(['quick', []]);
    known.open();
    expect([(await slow).text, (await quick).text]).toEqual(['slow', 'quick']);
    stage.expectOrder('looking up', 'quick in', 'released quick k', 'slow in');
  });

  it('A client that leaves while its key is looked up is never queued, and its handler never runs', async () => {
    const known = gate();
    const contest = await Contest.through(framework, (app, work, stage) => {
      const left = framework.middleware((call, next) => {
        call.res.once('close', () => stage.note('third has left'));
        return next();
      });
      app.route('/first', lockOn('k'), async (call) => {
        await work();
        call.send('first');
      });
      app.route(
        '/slow',
        left,
        lockOn(async () => {
          stage.note('looking up');
          await known;
          return 'k';
        }),
        () => stage.note('third in'),
      );
    });
    const third = (await contest.stage.connect()).request({ path: '/slow', trace: 'third' });
    await contest.stage.until('looking up');
    await third.hangUp('RST');
    await contest.stage.until('third has left');
    known.open();
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/first$/);
    expect(contest.stage.journal).not.toContain('third in');
    expect(contest.stage.journal).not.toContain('waiting third k');
  });
});
