import { type Gate, gate } from '../../support/gate.ts';
import { type Call, describeStyles } from '../../support/http/frameworks.ts';
import type { Hangup, RawClient } from '../../support/http/raw-client.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

const hangups: Hangup[] = ['FIN', 'RST'];

interface Two {
  readonly stage: ServerStage;
  readonly client: RawClient;
  readonly ends: Readonly<Record<'one' | 'two', Gate>>;
}

describeStyles('Requests that are pipelined on one connection', (framework) => {
  const { lockOn } = framework;

  it('[pipelining-01] Pipelined requests for one key get their responses one after the other, without a deadlock', async () => {
    const stage = await ServerStage.start(framework, (app, stage) =>
      app.route('/:id', lockOn('k'), async (call) => {
        stage.note(`${call.params.id} in`);
        await new Promise((resolve) => setImmediate(resolve));
        expect(await stage.holder('k')).toBe(call.params.id);
        stage.note(`${call.params.id} out`);
        call.send(`answer-${call.params.id}.`);
      }),
    );
    const client = await stage.connect();
    client.request(...['one', 'two', 'three'].map((id) => ({ path: `/${id}`, trace: id })));
    await client.receives(/answer-one\.[\s\S]*answer-two\.[\s\S]*answer-three\./);
    stage.expectOrder('one in', 'one out', 'two in', 'two out', 'three in', 'three out');
    await stage.free('k');
    await stage.unheard();
  });

  it('[pipelining-02] Pipelined requests get through if the first one waits for the key of the second one', async () => {
    const stage = await ServerStage.start(framework, (app, stage) =>
      app
        .route(
          '/slow-key',
          lockOn(async () => {
            await stage.until('quick in');
            return 'k';
          }),
          (call) => call.send('slow.'),
        )
        .route('/quick', lockOn('k'), async (call) => {
          stage.note('quick in');
          await stage.until('waiting slow k');
          call.send('quick.');
        }),
    );
    const client = await stage.connect();
    client.request({ path: '/slow-key', trace: 'slow' }, { path: '/quick', trace: 'quick' });
    // The second response is ended behind the first one's back, and sent after it.
    await client.receives(/slow\.[\s\S]*quick\./);
    await stage.free('k');
  });

  it.each(hangups)(
    '[pipelining-03] If pipelined requests are aborted (%s), the holder keeps its hold until its end, and the waiter leaves the queue',
    async (how) => {
      const work = gate();
      const stage = await ServerStage.start(framework, (app, stage) =>
        app.route('/:id', lockOn('k'), async (call) => {
          stage.note(`${call.params.id} in`);
          await work;
          stage.note(`${call.params.id} out`);
          call.send('late');
        }),
      );
      const client = await stage.connect();
      client.request({ path: '/one', trace: 'one' }, { path: '/two', trace: 'two' });
      await stage.until('one in');
      await stage.until('waiting two k');
      await client.hangUp(how);
      await stage.until('aborted two k');
      const stranger = stage.get('/stranger', 'stranger');
      await stage.until('waiting stranger k');
      expect([await stage.holder('k'), await stage.waiters('k')]).toEqual(['one', ['stranger']]);
      work.open();
      expect((await stranger).status).toBe(200);
      stage.expectOrder('one in', 'one out', 'stranger in', 'stranger out');
      expect(stage.journal).not.toContain('two in');
    },
  );

  /** Two pipelined requests at work, each under a guard of its own key. */
  async function twoAtWork(begins: (call: Call, stage: ServerStage) => void = () => {}): Promise<Two> {
    const ends = { one: gate(), two: gate() };
    const stage = await ServerStage.start(framework, (app, stage) =>
      app.route(
        '/:id',
        lockOn((call) => call.params.id),
        async (call) => {
          const id = call.params.id as 'one' | 'two';
          begins(call, stage);
          stage.note(`${id} in`);
          await ends[id];
          if (id === 'one') call.send('late');
          else call.res.destroy();
        },
      ),
    );
    const client = await stage.connect();
    client.request({ path: '/one', trace: 'one' }, { path: '/two', trace: 'two' });
    await Promise.all([stage.until('one in'), stage.until('two in')]);
    return { stage, client, ends };
  }

  /** Shows that each of them keeps its hold until its own end. */
  async function expectOwnEnds({ stage, ends }: Two): Promise<void> {
    await stage.get('/nowhere/else');
    expect([await stage.holder('one'), await stage.holder('two')]).toEqual(['one', 'two']);
    ends.two.open();
    await stage.free('two');
    expect(await stage.holder('one')).toBe('one');
    ends.one.open();
    await stage.free('one');
    expect(stage.journal.filter((line) => line.startsWith('lost'))).toEqual([]);
  }

  it.each(hangups)(
    '[pipelining-04] If pipelined requests are aborted (%s) while all of them run, each keeps its hold until its own end',
    async (how) => {
      const two = await twoAtWork();
      await two.client.hangUp(how);
      await expectOwnEnds(two);
    },
  );

  it.each(hangups)(
    '[pipelining-05] If pipelined requests are aborted (%s) after a response that is queued behind another, nothing stays held',
    async (how) => {
      const work = gate();
      const stage = await ServerStage.start(framework, (app, stage) =>
        app
          .route('/slow', async (call) => {
            await work;
            stage.note('slow out');
            call.send('late');
          })
          .route('/quick', lockOn('k', { releaseOn: 'close' }), stage.handler('quick')),
      );
      const client = await stage.connect();
      client.request({ path: '/slow', trace: 'slow' }, { path: '/quick', trace: 'quick' });
      await stage.until('quick in');
      await stage.get('/nowhere');
      expect(await stage.holder('k')).toBe('quick');
      await client.hangUp(how);
      await stage.free('k');
      work.open();
      await stage.until('slow out');
    },
  );

  it('[pipelining-06] A queued response that Node destroys because its connection is gone is not its handler’s end', async () => {
    // As newer versions of Node do by themselves, as their first act at the connection's `close`.
    const two = await twoAtWork(({ req, res, params }, stage) =>
      req.socket.prependOnceListener('close', () => {
        stage.note(`${params.id} destroyed: ${req.socket.destroyed}`);
        res.destroy();
      }),
    );
    await two.client.hangUp('RST');
    await two.stage.until('two destroyed: true');
    await expectOwnEnds(two);
  });

  it('[pipelining-09] A queued response whose handler has set the timeout that ends the connection is not its handler’s end', async () => {
    // Newer versions of Node destroy the response then.
    const two = await twoAtWork(({ req: { socket }, params }) => {
      if (params.id === 'two') socket.setTimeout(20);
    });
    await two.client.closed;
    await expectOwnEnds(two);
  });

  it('[pipelining-07] Pipelined requests that are destroyed because the connection fails are not their handlers’ end', async () => {
    const two = await twoAtWork(({ req: { socket }, res, params }, stage) => {
      // Newer versions of Node, too, close a queued response right after this, and destroy it again with the connection.
      socket.once('error', () => {
        stage.note(`${params.id} destroyed: ${res.socket === null ? 'queued' : 'first'}`);
        res.destroy();
        if (res.socket !== null) return;
        process.nextTick(() => res.emit('close'));
        socket.prependOnceListener('close', () => res.destroy());
      });
      socket.once('close', () => setImmediate(() => stage.note(`${params.id} gone`)));
    });
    await two.client.hangUp('RST');
    await Promise.all([two.stage.until('one gone'), two.stage.until('two gone')]);
    expect(two.stage.journal).toEqual(expect.arrayContaining(['one destroyed: first', 'two destroyed: queued']));
    await expectOwnEnds(two);
  });

  it('[pipelining-08] If `Connection: close` of an earlier response cuts off pipelined requests, a running handler keeps its hold until its end', async () => {
    const work = gate();
    const stage = await ServerStage.start(framework, (app, stage) =>
      app
        .route('/last', async (call) => {
          await stage.until('cut in');
          call.res.setHeader('Connection', 'close');
          call.send('last');
        })
        .route('/:id', lockOn('k'), async (call) => {
          stage.note(`${call.params.id} in`);
          await work;
          stage.note(`${call.params.id} out`);
          call.send('done');
        }),
    );
    const client = await stage.connect();
    client.request({ path: '/last', trace: 'last' }, { path: '/cut', trace: 'cut' });
    await client.closed;
    const stranger = stage.get('/stranger', 'stranger');
    await stage.until('waiting stranger k');
    await stage.get('/no/where');
    expect([await stage.holder('k'), await stage.waiters('k')]).toEqual(['cut', ['stranger']]);
    work.open();
    expect((await stranger).status).toBe(200);
    stage.expectOrder('cut in', 'cut out', 'stranger in', 'stranger out');
    await stage.free('k');
  });
});
