import { Contest } from '../../support/http/contest.ts';
import { describeFrameworks } from '../../support/http/frameworks.ts';

describeFrameworks('Middleware before a guard', (framework) => {
  const { lockOn } = framework;

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
});
