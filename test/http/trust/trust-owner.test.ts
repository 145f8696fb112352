import { setImmediate as turn } from 'node:timers/promises';
import { currentTrace, getLock, type LocksOptions } from 'reenlock';
import { TraceSignatures } from '../../../src/core/model/signature.ts';
import { gate } from '../../support/gate.ts';
import { describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

const minted = /^[0-9a-f]{32}$/;

describeStyles('a client that is not trusted', (framework) => {
  const { lockOn } = framework;
  const { NODE_ENV } = process.env;
  afterEach(() => {
    process.env.NODE_ENV = NODE_ENV;
    return ServerStage.endAll();
  });

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

  const forwarded = { 'X-Forwarded-For': '203.0.113.9' };
  const secrets = ['a-secret-that-the-client-does-not-know'];
  const forged = new TraceSignatures({ secrets: ['a-secret-that-the-client-has-made-up'], audience: 'shop' });
  it.each<[string, LocksOptions['trust'], Record<string, string>, env?: string]>([
    // Such a client looks private: it comes through a published port of a container, or a tunnel.
    ['not set, in production', undefined, {}, 'production'],
    ["'internal'", 'internal', forwarded],
    ["'none'", 'none', {}],
    ['a predicate that says no', () => false, {}],
    ['secrets', { secrets, audience: 'shop' }, {}],
    [
      'secrets, and a forged signature',
      { secrets, audience: 'shop' },
      { 'X-Trace-Signature': forged.sign('mine', Date.now()) },
    ],
  ])(
    'spends once what it has once, though it sends its own id twice in parallel: %s',
    async (_, trust, headers, env = 'test') => {
      process.env.NODE_ENV = env;
      let balance = 100;
      const stage = await ServerStage.start(framework, { trust }, (app, stage) =>
        app.route('/wallet', lockOn('wallet'), async (call) => {
          stage.note('in');
          const seen = balance;
          // As long as both are on their way: who could come in between would have.
          await Promise.all([secondWaits, getLock('wallet').run(() => turn())]);
          if (seen >= 80) balance = seen - 80;
          stage.note('out');
          call.send({ paid: seen >= 80 });
        }),
      );
      const secondWaits = new Promise<void>((resolve) => stage.locks.on('waiting', () => resolve()));
      const answers = await Promise.all([stage.get('/wallet', 'mine', headers), stage.get('/wallet', 'mine', headers)]);
      expect(answers.filter(({ body }) => body.paid)).toHaveLength(1);
      expect(balance).toBe(20);
      expect(stage.journal.filter((line) => line === 'in' || line === 'out')).toEqual(['in', 'out', 'in', 'out']);
    },
  );

  it("spends twice what it has once where `trust` is 'all', which is why that is for closed networks only", async () => {
    let balance = 100;
    const bothIn = gate();
    const stage = await ServerStage.start(framework, { trust: 'all' }, (app, stage) =>
      app.route('/wallet', lockOn('wallet'), async (call) => {
        const seen = balance;
        stage.note('in');
        if (stage.count('in') === 2) bothIn.open();
        await bothIn;
        if (seen >= 80) balance = seen - 80;
        call.send({ paid: seen >= 80 });
      }),
    );
    const answers = await Promise.all([
      stage.get('/wallet', 'mine', forwarded),
      stage.get('/wallet', 'mine', forwarded),
    ]);
    expect(answers.map(({ body }) => body.paid)).toEqual([true, true]);
    expect(balance).toBe(20);
  });

  it("With `reentrant: 'request'`, a trusted request of the same trace waits, too", async () => {
    const go = gate();
    const stage = await ServerStage.start(framework, (app, stage) =>
      app.route('/:who', lockOn('k', { reentrant: 'request' }), async (call) => {
        stage.note(`${call.params.who} in`);
        if (call.params.who === 'first') await go;
        call.send(String(currentTrace()?.traceId));
      }),
    );
    const waited = new Promise<void>((resolve) => stage.locks.on('waiting', () => resolve()));
    const first = stage.get('/first', 'shared');
    await stage.until('first in');
    const second = stage.get('/second', 'shared');
    await waited;
    expect(stage.journal).not.toContain('second in');
    go.open();
    expect([(await first).text, (await second).text]).toEqual(['shared', 'shared']);
  });
});
