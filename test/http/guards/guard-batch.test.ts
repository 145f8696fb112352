import type { Hold, LockError } from 'reenlock';
import { systemClock } from '../../../src/core/base/clock.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { describeStyles, type Framework, type GuardOptions } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { FakeStore } from '../../support/stores/fake-store.ts';

/** More than the buffers of a loopback connection take. */
const largeBytes = 32 * 2 ** 20;

describeStyles('A guard with a list of keys', (framework) => {
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

  it("The request's hold is one for all keys of its guard: work that it keeps them for has every one", async () => {
    const { stage, go } = await serving(framework);
    await stage.get('/later', 'later');
    await stage.get('/nowhere');
    expect(await Promise.all(['a', 'b', 'c'].map((key) => stage.holder(key)))).toEqual(['later', 'later', 'later']);
    go.open();
    await stage.free('a', 'b', 'c');
  });

  it("The request's hold on several keys is lost with any of them, and has no fence, which would be that of one key", async () => {
    const { stage } = await serving(framework);
    expect((await stage.get('/lost')).body).toEqual([false, 'ERR_LOCK_LOST', 'ERR_LOCK_CONFIG', 'ERR_LOCK_CONFIG']);
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

function codeOf({ code }: LockError): string {
  return code;
}

interface Serving {
  readonly stage: ServerStage;
  readonly store: FakeStore;
  /** Opened, it ends the handler of `/b`. */
  readonly go: Gate;
}

/** `/all` and `/large` guard three keys; `/b` holds one of them until a test says so. */
async function serving(framework: Framework, guard: GuardOptions = {}): Promise<Serving> {
  const { lockOn, middleware } = framework;
  const go = gate();
  const store = new FakeStore(systemClock);
  const stage = await ServerStage.start(framework, { store }, (app, stage) => {
    const watch = middleware(({ req, res }, next) => {
      res.once('close', () => stage.note(`closed ${req.headers['x-trace-id']}`));
      return next();
    });
    app.route('/b', lockOn('b'), async (call) => {
      stage.note('first in');
      await go;
      call.send('b');
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
      '/later',
      lockOn(() => ['c', 'a', 'b']),
      (call) => {
        call.send('later');
        call.lock?.waitUntil(go);
      },
    );
    app.route(
      '/lost',
      lockOn(() => ['c', 'a', 'b']),
      async (call) => {
        const { lock } = call as { lock: Hold };
        const lost = new Promise((resolve) =>
          lock.signal.addEventListener('abort', () => resolve(lock.signal.reason.code)),
        );
        await stage.locks.forceRelease('a');
        const fence = await Promise.resolve()
          .then(() => lock.fence)
          .catch(codeOf);
        const detach = await lock.detach({ leaseMs: 1_000 }).catch(codeOf);
        call.send([lock.isHeld(), await lost, fence, detach]);
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
  return { stage, store, go };
}
