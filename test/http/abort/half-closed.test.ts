import { gate } from '../../support/gate.ts';
import { Contest } from '../../support/http/contest.ts';
import { describeFrameworks } from '../../support/http/frameworks.ts';
import { clientLeaves, ServerStage } from '../../support/http/server-stage.ts';

describeFrameworks('A client that ends its side of the connection after its request, and still reads', (framework) => {
  const { lockOn } = framework;

  it('[half-closed-01] Without httpAllowHalfOpen, a client that ends its side has left, and the handler keeps the lock until its end', async () => {
    const work = gate();
    const contest = await Contest.start(framework, async (call, stage) => {
      await clientLeaves(stage);
      await work;
      call.send('to nobody');
    });
    contest.go();
    contest.first.halfClose();
    await contest.stage.until('first hears');
    await contest.expectHeldUntil(work);
    await contest.first.closed;
    expect(contest.first.received).toBe('');
  });

  it('[half-closed-02] With httpAllowHalfOpen, a client that ends its side gets its response, and the lock is kept until then', async () => {
    const work = gate();
    const contest = await Contest.start(framework, async (call, stage) => {
      Object.assign(stage.server, { httpAllowHalfOpen: true });
      call.req.socket.once('end', () => stage.note('half closed'));
      stage.note('first works');
      await work;
      call.send('to its reader');
    });
    contest.go();
    await contest.stage.until('first works');
    contest.first.halfClose();
    await contest.stage.until('half closed');
    await contest.expectHeldUntil(work);
    await contest.first.receives(/to its reader$/);
  });

  it('[half-closed-03] With httpAllowHalfOpen, a client that ends its side keeps its place in the queue', async () => {
    const work = gate();
    const stage = await ServerStage.start(framework, (app, stage) => {
      Object.assign(stage.server, { httpAllowHalfOpen: true });
      const noteEnd = framework.middleware((call, next) => {
        call.req.socket.once('end', () => stage.note('half closed'));
        return next();
      });
      app.route('/first', lockOn('k'), stage.handler('first', work));
      app.route('/half', noteEnd, lockOn('k'), (call) => call.send('answer to half'));
    });
    const first = stage.get('/first', 'first');
    await stage.until('first in');
    const half = (await stage.connect()).request({ path: '/half', trace: 'half' });
    await stage.until('waiting half k');
    half.halfClose();
    await stage.until('half closed');
    await stage.get('/nowhere');
    expect([await stage.holder('k'), await stage.waiters('k')]).toEqual(['first', ['half']]);
    work.open();
    await first;
    await half.receives(/answer to half$/);
    stage.expectOrder('released first k', 'granted half k');
    await stage.free('k');
  });
});
