import { systemClock } from '../../../src/core/base/clock.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { describeStyles, type Framework, type GuardOptions } from '../../support/http/frameworks.ts';
import { ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { FakeStore } from '../../support/stores/fake-store.ts';

watchLeaks();

/** More than the buffers of a loopback connection take. */
const largeBytes = 32 * 2 ** 20;

describeStyles('A guard with a list of keys', (framework) => {
  afterEach(ServerStage.endAll);

  it('A guard with a list of keys sends all acquires before the first reply', async () => {
    const { stage, store } = await serving(framework);
    const answer = store.gate('acquire');
    const all = stage.get('/all', 'all');
    await stage.until('granted all b');
    expect(store.count('acquire')).toBe(3);
    expect(stage.journal).not.toContain('all in');
    answer();
    expect((await all).body).toEqual(['a', 'b', 'c']);
    expect(store.count('acquire')).toBe(3);
  });

  it('A guard with a list of keys keeps those before the first taken one, and waits for that one alone', async () => {
    const { stage, go } = await serving(framework);
    const first = stage.get('/b', 'first');
    await stage.until('first in');
    const all = stage.get('/all', 'all');
    await stage.until('waiting all b');
    await stage.free('c');
    expect([await stage.holder('a'), await stage.waiters('b')]).toEqual(['all', ['all']]);
    go.open();
    expect([(await first).status, (await all).status]).toEqual([200, 200]);
    stage.expectOrder('waiting all b', 'released first b', 'all in');
  });

  it('A guard with a list of keys waits waitMs in all, and then responds with 423', async () => {
    const clock = new ManualClock();
    const { stage, go, finish } = await serving(framework, { waitMs: 5_000 }, { clock });
    const first = stage.get('/b', 'first');
    await stage.until('first in');
    const all = stage.get('/all', 'all');
    await stage.until('waiting all b');
    await clock.advance(4_000);
    const later = stage.get('/c', 'later');
    await stage.until('later in');
    go.open();
    expect((await first).status).toBe(200);
    await stage.until('waiting all c');
    await clock.advance(1_000);
    expect((await all).status).toBe(423);
    expect(stage.journal).not.toContain('all in');
    await Promise.all([stage.free('a'), stage.free('b')]);
    finish.open();
    expect((await later).status).toBe(200);
  });

  it('A guard whose client disconnects while its keys are acquired releases what is granted, and its handler never runs', async () => {
    const { stage, store } = await serving(framework);
    const answer = store.gate('acquire');
    const client = (await stage.connect()).request({ path: '/all', trace: 'all' });
    await stage.until('granted all b');
    await client.hangUp();
    await stage.until('closed all');
    answer();
    await Promise.all(['a', 'b', 'c'].map((key) => stage.free(key)));
    expect(stage.journal).not.toContain('all in');
  });

  it('With releaseOn `close`, a guard keeps all of its keys until the response has closed', async () => {
    const { stage } = await serving(framework, { releaseOn: 'close' });
    const client = (await stage.connect()).request({ path: '/large', trace: 'all' });
    client.pause();
    await stage.until('all answered');
    await stage.get('/nowhere');
    expect(await Promise.all(['a', 'b', 'c'].map((key) => stage.holder(key)))).toEqual(['all', 'all', 'all']);
    client.socket.resume();
    await stage.free('a', 'b', 'c');
    stage.expectOrder('all answered', 'closed all', 'released all a');
  });

  it('failOpen never lets a request in for a store error on a key behind one that is taken', async () => {
    const { stage, store, go } = await serving(framework, { failOpen: true });
    const first = stage.get('/b', 'first');
    await stage.until('first in');
    // The first two calls are answered, the third is not.
    store.gate('acquire')();
    store.gate('acquire')();
    store.next('acquire', { kind: 'rejected', error: new Error('read ECONNRESET') });
    const all = stage.get('/all', 'all');
    await stage.until('waiting all b');
    expect(stage.journal).not.toContain('all in');
    go.open();
    expect((await all).body).toEqual(['a', 'b', 'c']);
    await first;
  });
});

interface Serving {
  readonly stage: ServerStage;
  readonly store: FakeStore;
  /** Opened, it ends the handler of `/b`. */
  readonly go: Gate;
  /** Opened, it ends the handler of `/c`. */
  readonly finish: Gate;
}

/** `/all` and `/large` guard three keys; `/b` holds one of them until a test says so, `/c` another. */
async function serving(
  framework: Framework,
  guard: GuardOptions = {},
  { clock = systemClock, ...options }: ServerStageOptions = {},
): Promise<Serving> {
  const { lockOn, middleware } = framework;
  const [go, finish] = [gate(), gate()];
  const store = new FakeStore(clock);
  const stage = await ServerStage.start(framework, { ...options, clock, store }, (app, stage) => {
    const watch = middleware(({ req, res }, next) => {
      res.once('close', () => stage.note(`closed ${req.headers['x-trace-id']}`));
      return next();
    });
    app.route('/b', lockOn('b'), async (call) => {
      stage.note('first in');
      await go;
      call.send('b');
    });
    app.route('/c', lockOn('c'), async (call) => {
      stage.note('later in');
      await finish;
      call.send('c');
    });
    app.route(
      '/large',
      watch,
      lockOn(() => ['c', 'a', 'b'], guard),
      (call) => {
        call.detach();
        call.res.end(Buffer.alloc(largeBytes));
        stage.note('all answered');
      },
    );
    app.route(
      '/all',
      watch,
      lockOn(() => ['c', 'a', 'b', 'a'], guard),
      (call) => {
        stage.note('all in');
        call.send([...(call.locks?.keys() ?? [])]);
      },
    );
  });
  return { stage, store, go, finish };
}
