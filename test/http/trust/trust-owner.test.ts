import { gate } from '../../support/gate.ts';
import { describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

const minted = /^[0-9a-f]{32}$/;

describeStyles('a client that is not trusted', (framework) => {
  const { lockOn } = framework;

  it('A client that is not trusted waits, though it quotes the id of the request that holds the key', async () => {
    const go = gate();
    const stage = await ServerStage.start(framework, (app, stage) =>
      app.route('/:who', lockOn('k'), async (call) => {
        stage.note(`${call.params.who} in`);
        if (call.params.who === 'first') await go;
        call.send('done');
      }),
    );
    const first = stage.get('/first', 'live-holder');
    await stage.until('first in');
    const thief = stage.get('/thief', 'live-holder', { 'X-Forwarded-For': '203.0.113.9' });
    const friend = stage.get('/friend', 'live-holder');
    // The trusted one is the same trace: it re-enters.
    await stage.until('friend in');
    await friend;
    expect(await stage.waiters('k')).toEqual([expect.stringMatching(minted)]);
    expect(stage.journal).not.toContain('thief in');
    go.open();
    await Promise.all([first, thief]);
    await stage.free('k');
  });
});
