import { getLock, type LockEvents, LockStoreError } from 'reenlock';
import { systemClock } from '../../../src/core/base/clock.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { type Gate, gate } from '../../support/gate.ts';
import {
  type App,
  describeStyles,
  type Framework,
  type GuardOptions,
  type Handler,
} from '../../support/http/frameworks.ts';
import { ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';
import { FakeStore, type Fault } from '../../support/stores/fake-store.ts';
import { recordWarnings } from '../../support/warnings.ts';

const warnings = recordWarnings();

const refused: Fault = { kind: 'rejected', error: new Error('connect ECONNREFUSED') };
const passing: GuardOptions = { failOpen: true };

describeStyles('failOpen', (framework) => {
  it.each<[string, Fault]>([
    ['rejects', refused],
    ['executes and rejects', { kind: 'rejectedReply', error: new Error('read ECONNRESET') }],
    ['throws', { kind: 'thrown', error: new Error('not connected') }],
  ])('failOpen lets a request in without the lock if the store %s', async (_, fault) => {
    const { stage, store, failedOpen } = await serving(framework, passing);
    store.always('acquire', fault);
    const { status, body } = await stage.get('/x', 'first');
    expect({ status, body }).toEqual({ status: 200, body: { lock: null, locks: null } });
    expect(failedOpen).toEqual([{ keys: ['k'], traceId: 'first', error: expect.any(LockStoreError) }]);
    store.heal();
    await stage.free('k');
  });

  it('failOpen lets a request in after storeTimeoutMs if the store does not reply', async () => {
    const clock = new ManualClock();
    const { stage, store } = await serving(framework, passing, { clock, storeTimeoutMs: 700 });
    store.always('acquire', { kind: 'lostCall' });
    const answer = stage.get('/x');
    await stage.until('acquire');
    await clock.advance(699);
    expect(stage.journal).not.toContain('in');
    await clock.advance(1);
    await stage.until('in');
    expect((await answer).status).toBe(200);
    store.heal();
    await clock.advance(30_000);
  });

  it('failOpen lets a queued request in at the end of its wait if the store fails meanwhile', async () => {
    const clock = new ManualClock();
    const { stage, store, go } = await serving(framework, { ...passing, waitMs: 5_000 }, { clock });
    const first = stage.get('/holds', 'first');
    await stage.until('holds in');
    const second = stage.get('/x', 'second');
    await stage.until('waiting second k');
    store.always('acquire', refused);
    await clock.advance(4_900);
    expect(stage.journal).not.toContain('in');
    await clock.advance(100);
    await stage.until('in');
    expect((await second).body).toEqual({ lock: null, locks: null });
    store.heal();
    go.open();
    expect((await first).status).toBe(200);
  });

  it('failOpen is reported as an event each time, and as a warning once', async () => {
    const { stage, store, failedOpen } = await serving(framework, passing);
    store.always('acquire', refused);
    for (const trace of ['a', 'b', 'c']) expect((await stage.get('/x', trace)).status).toBe(200);
    expect(failedOpen.map(({ traceId }) => traceId)).toEqual(['a', 'b', 'c']);
    expect(warnings()).toEqual([
      {
        code: 'LOCK_FAILED_OPEN',
        message: expect.stringContaining('failOpen'),
        detail: 'See node_modules/reenlock/docs/reference/errors.md#lock_failed_open',
      },
    ]);
  });

  it('failOpen releases what it got of several keys before it lets the request in', async () => {
    const { stage, store, failedOpen } = await serving(framework, passing);
    // The first call is answered, the second is not.
    store.gate('acquire')();
    store.next('acquire', refused);
    const { status, body } = await stage.get('/several');
    expect({ status, body }).toEqual({ status: 200, body: { lock: null, locks: null } });
    stage.expectOrder('granted first a', 'released first a', 'in');
    expect(failedOpen).toEqual([expect.objectContaining({ keys: ['a', 'b'] })]);
  });

  it('failOpen lets no request in before the store has replied for the keys that may be held', async () => {
    const { stage, store } = await serving(framework, passing);
    store.gate('acquire')();
    store.next('acquire', refused);
    const released = gate();
    store.always('release', { kind: 'gate', opened: released });
    const several = stage.get('/several');
    while (store.count('release') === 0) await new Promise(setImmediate);
    await stage.get('/nowhere');
    expect(stage.journal).not.toContain('in');
    released.open();
    expect((await several).status).toBe(200);
    expect(stage.journal).toContain('in');
  });

  it('failOpen leaves no outer guard’s hold where handlers look for this guard’s', async () => {
    const { stage, store } = await serving(framework, passing);
    store.gate('acquire')();
    store.next('acquire', refused);
    expect((await stage.get('/nested')).body).toEqual({ lock: null, locks: ['outer'] });
  });

  it('failOpen never lets in a request that timed out, found the queue full, or has no usable key', async () => {
    const { stage, go, failedOpen } = await serving(framework, { ...passing, waitMs: 20 }, { maxWaitersPerKey: 1 });
    const first = stage.get('/holds', 'first');
    await stage.until('holds in');
    expect((await stage.get('/x', 'second')).status).toBe(423);
    const waiter = stage.get('/waits', 'third');
    await stage.until('waiting third k');
    expect((await stage.get('/x', 'fourth')).status).toBe(503);
    expect((await stage.get('/no-key')).status).toBe(400);
    go.open();
    expect([(await first).status, (await waiter).status]).toEqual([200, 200]);
    expect([failedOpen.length, stage.count('in')]).toEqual([0, 0]);
  });

  it('failOpen never lets in a request that was queued after the store recovered because another one’s poll had failed', async () => {
    const clock = new ManualClock();
    const { stage, store, go, failedOpen } = await serving(framework, { ...passing, waitMs: 500 }, { clock });
    const first = stage.get('/holds', 'first');
    await stage.until('holds in');
    const waiter = stage.get('/waits', 'second');
    await stage.until('waiting second k');
    store.next('acquire', refused);
    await clock.advance(1_250);
    const third = stage.get('/x', 'third');
    await stage.until('waiting third k');
    await clock.advance(500);
    const { status } = await third;
    go.open();
    expect([(await first).status, (await waiter).status]).toEqual([200, 200]);
    expect([status, failedOpen.length, stage.count('in')]).toEqual([423, 0, 0]);
  });

  it('failOpen never lets in a request that has lost an earlier guard’s lock when the store fails', async () => {
    const { stage, store, failedOpen } = await serving(framework, passing);
    const open = gate();
    stage.locks.on('granted', () =>
      store.next('acquire', { kind: 'gate', opened: open.then(() => Promise.reject(new Error('read ECONNRESET'))) }),
    );
    const answer = stage.get('/nested');
    await stage.until('acquire', 2);
    await store.forceRelease('outer', (await store.inspect('outer')).holds[0]?.fence ?? 0);
    await stage.until('lost first outer');
    open.open();
    expect((await answer).status).toBe(503);
    expect([failedOpen.length, stage.count('in')]).toEqual([0, 0]);
  });

  it('failOpen never lets a request in once the Locks is closing, even if the store fails then', async () => {
    const { stage, store, failedOpen } = await serving(framework, { ...passing, handler: 'problem' });
    const open = gate();
    store.next('acquire', { kind: 'gate', opened: open.then(() => Promise.reject(new Error('Connection is closed'))) });
    const answer = stage.get('/x');
    await stage.until('acquire');
    const closing = stage.locks.close();
    open.open();
    const { status, text } = await answer;
    expect([status, JSON.parse(text).code]).toEqual([503, 'ERR_LOCK_CLOSED']);
    expect([failedOpen.length, stage.count('in')]).toEqual([0, 0]);
    await closing;
  });

  it('failOpen never lets in a request whose signal was aborted before the store failed', async () => {
    const giveUp = new AbortController();
    const { stage, store, failedOpen } = await serving(framework, { ...passing, signal: giveUp.signal });
    const open = gate();
    store.next('acquire', { kind: 'gate', opened: open.then(() => Promise.reject(new Error('read ECONNRESET'))) });
    const answer = stage.get('/x');
    await stage.until('acquire');
    giveUp.abort();
    open.open();
    expect((await answer).status).toBe(503);
    expect([failedOpen.length, stage.count('in')]).toEqual([0, 0]);
  });

  it('failOpen never lets in a request whose client disconnected before the store failed', async () => {
    const { stage, store, failedOpen } = await serving(framework, passing);
    const open = gate();
    store.next('acquire', { kind: 'gate', opened: open.then(() => Promise.reject(new Error('read ECONNRESET'))) });
    const client = (await stage.connect()).request({ path: '/x', trace: 'first' });
    await stage.until('acquire');
    await client.hangUp();
    await stage.until('closed first');
    open.open();
    await stage.free('k');
    expect((await stage.get('/x', 'second')).status).toBe(200);
    expect([failedOpen.length, stage.count('in')]).toEqual([0, 1]);
  });

  it('failOpen does not hide a store error of the key function itself', async () => {
    const { stage, store, failedOpen } = await serving(framework, passing);
    store.always('inspect', refused);
    expect((await stage.get('/asks')).status).toBe(503);
    expect([failedOpen.length, stage.count('in')]).toEqual([0, 0]);
    store.heal();
  });
});

interface Serving {
  readonly stage: ServerStage;
  readonly store: FakeStore;
  /** Opened, it ends the handler of `/holds`. */
  readonly go: Gate;
  readonly failedOpen: readonly LockEvents['failedOpen'][];
}

/** Routes below guards with these options, on a store that fails when a test says so. */
async function serving(
  framework: Framework,
  guard: GuardOptions,
  { clock = systemClock, ...options }: ServerStageOptions = {},
): Promise<Serving> {
  const { lockOn, middleware } = framework;
  const go = gate();
  const store = new FakeStore(clock);
  const failedOpen: LockEvents['failedOpen'][] = [];
  const build = (app: App, stage: ServerStage): unknown => {
    const enter: Handler = (call) => {
      stage.note('in');
      call.send({ lock: call.lock?.key ?? null, locks: call.locks === undefined ? null : [...call.locks.keys()] });
    };
    const hold: Handler = async (call) => {
      stage.note('holds in');
      await go;
      call.send('held');
    };
    const watch = middleware(({ req, res }, next) => {
      res.once('close', () => stage.note(`closed ${req.headers['x-trace-id']}`));
      return next();
    });
    const ask = async (): Promise<string> => {
      await getLock('k').inspect();
      return 'k';
    };
    return app
      .use(watch)
      .route('/x', lockOn('k', guard), enter)
      .route('/holds', lockOn('k'), hold)
      .route('/waits', lockOn('k'), (call) => call.send('waited'))
      .route(
        '/several',
        lockOn(() => ['b', 'a'], guard),
        enter,
      )
      .route('/nested', lockOn('outer'), lockOn('inner', guard), enter)
      .route(
        '/no-key',
        lockOn(() => undefined, guard),
        enter,
      )
      .route('/asks', lockOn(ask, guard), enter);
  };
  const stage = await ServerStage.start(framework, { clock, store, ...options }, build);
  const acquire = store.acquire.bind(store);
  store.acquire = (request, terms) => {
    stage.note('acquire');
    return acquire(request, terms);
  };
  stage.locks.on('failedOpen', (event) => failedOpen.push(event));
  return { stage, store, go, failedOpen };
}
