import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { describeFrameworks } from '../../support/http/frameworks.ts';
import type { Hangup } from '../../support/http/raw-client.ts';
import { ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';
import { FakeStore } from '../../support/stores/fake-store.ts';

const hangups: Hangup[] = ['FIN', 'RST'];

describeFrameworks('A client that hangs up while it waits', (framework) => {
  const { lockOn } = framework;

  /** `first` holds the key until `go`; `second` waits for it, holding another one from an outer guard; then `third` waits. */
  async function waiting(options?: ServerStageOptions) {
    const go = gate();
    const stage = await ServerStage.start(framework, options, (app, stage) =>
      app
        .route('/first', lockOn('k'), stage.handler('first', go))
        .route('/second', lockOn('outer'), lockOn('k'), stage.handler('second'))
        .route('/third', lockOn('k'), stage.handler('third')),
    );
    const first = stage.get('/first', 'first');
    await stage.until('first in');
    const second = (await stage.connect()).request({ path: '/second', trace: 'second' });
    await stage.until('waiting second k');
    const third = stage.get('/third', 'third');
    await stage.until('waiting third k');
    return { stage, go, first, second, third };
  }

  it.each(hangups)(
    '[abort-waiting-01] A client that hangs up while it waits leaves the queue, releases its outer hold, and its handler never runs (%s)',
    async (how) => {
      const { stage, go, first, second, third } = await waiting();
      expect([await stage.waiters('k'), await stage.holder('outer')]).toEqual([['second', 'third'], 'second']);

      await second.hangUp(how);
      await stage.until('aborted second k');
      await stage.free('outer');
      expect([await stage.holder('k'), await stage.waiters('k')]).toEqual(['first', ['third']]);

      go.open();
      expect([(await first).status, (await third).status]).toEqual([200, 200]);
      expect(stage.journal).not.toContain('second in');
      expect(stage.journal).not.toContain('granted second k');
    },
  );

  it('A request whose client hangs up while it waits fails as aborted: nobody reads its status, but logs do', async () => {
    const go = gate();
    const stage = await ServerStage.start(framework, (app, stage) => {
      app.onError((error, call) => {
        stage.note(`${error.code} ${error.status}, ${error.cause}`);
        call.detach();
        call.res.end();
      });
      app.route('/first', lockOn('k'), async (call) => {
        await go;
        call.send('first');
      });
      app.route('/second', lockOn('k'), () => stage.note('second in'));
    });
    const first = stage.get('/first', 'first');
    await stage.until('granted first k');
    const second = (await stage.connect()).request({ path: '/second', trace: 'second' });
    await stage.until('waiting second k');
    await second.hangUp();
    await stage.until('ERR_LOCK_ABORTED 499, AbortError: The client disconnected');
    go.open();
    await first;
    expect(stage.journal).not.toContain('second in');
  });

  it('[abort-waiting-02] A grant that arrives at the moment in which the client disconnects goes to the next waiter', async () => {
    const { stage, go, first, second, third } = await waiting();
    // The server sees the one and the other in one turn of its loop, in whichever order.
    go.open();
    second.socket.resetAndDestroy();
    expect([(await first).status, (await third).status]).toEqual([200, 200]);
    await stage.free('k', 'outer');
  });

  it('[abort-waiting-03] A client that leaves while its key function still runs leaves no queue entry', async () => {
    const key = gate();
    const stage = await ServerStage.start(framework, (app, stage) =>
      app.route(
        '/x',
        lockOn(async () => {
          stage.note('asked');
          await key;
          return 'k';
        }),
        () => stage.note('in'),
      ),
    );
    const client = (await stage.connect()).request({ path: '/x', trace: 'first' });
    await stage.until('asked');
    await client.hangUp();
    await stage.get('/nowhere');
    key.open();
    await stage.until('aborted first k');
    await stage.free('k');
    expect(stage.journal).not.toContain('in');
    expect(stage.journal).not.toContain('granted first k');
  });

  it.each(hangups)(
    '[abort-waiting-04] A grant that is on its way to a client that has left goes to the next waiter at once (%s)',
    async (how) => {
      const clock = new ManualClock();
      const store = new FakeStore(clock);
      const { stage, go, first, second, third } = await waiting({ clock, store });

      // The store makes it the holder, and this process does not hear of it yet.
      store.isMute = true;
      const answer = store.gate('release');
      go.open();
      expect((await first).status).toBe(200);
      await stage.get('/nowhere');
      expect([await stage.holder('k'), await stage.waiters('k')]).toEqual(['second', ['third']]);
      store.isMute = false;
      await second.hangUp(how);
      expect((await third).status).toBe(200);
      answer();
      await stage.free('k', 'outer');
      stage.expectOrder('first in', 'aborted second k', 'third in');
      expect(stage.journal).not.toContain('second in');
    },
  );

  it.each(hangups)(
    '[abort-waiting-05] A client that leaves while it waits for one of several keys releases those that it had (%s)',
    async (how) => {
      const go = gate();
      const stage = await ServerStage.start(framework, (app, stage) =>
        app.route('/first', lockOn('b'), stage.handler('first', go)).route(
          '/both',
          lockOn(() => ['a', 'b']),
          () => stage.note('both in'),
        ),
      );
      const first = stage.get('/first', 'first');
      await stage.until('first in');
      const both = (await stage.connect()).request({ path: '/both', trace: 'both' });
      await stage.until('waiting both b');
      expect(await stage.holder('a')).toBe('both');
      await both.hangUp(how);
      await stage.free('a');
      expect([await stage.holder('b'), await stage.waiters('b')]).toEqual(['first', []]);
      go.open();
      await first;
      expect(stage.journal).not.toContain('both in');
    },
  );
});
