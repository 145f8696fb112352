import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { id as rtracerId } from 'cls-rtracer';
import { isLockError, lock } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { type App, type Call, describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { pathOf } from '../../support/path-of.ts';

/** The owner of a lock that the calling code takes, or why it gets none. */
async function owner(): Promise<string> {
  return lock.run('own', (hold) => pathOf(hold)).catch((error) => (isLockError(error) ? error.code : String(error)));
}

/** As some pools are: its one connection was opened by the first caller, and all callbacks run in that one's context. */
class Pool {
  #connection: (<T>(run: () => T) => T) | undefined;

  query(callback: () => void): void {
    this.#connection ??= AsyncLocalStorage.snapshot();
    const run = this.#connection;
    setImmediate(() => run(callback));
  }
}

describeStyles('The owner where a pool runs callbacks in the context of its first caller', (framework) => {
  const { lockOn, traceContext } = framework;

  /** Answers what a later request is told, while the one that opened the pool's connection is still at work, or is over. */
  async function later(
    isFirstOver: boolean,
    build: (app: App, stage: ServerStage, pool: Pool) => unknown,
  ): Promise<{ owner: string }> {
    const go = gate();
    const stage = await ServerStage.start(framework, (app, stage) => {
      const pool = new Pool();
      app.route('/first', async (call) => {
        await new Promise<void>((resolve) => pool.query(resolve));
        stage.note('connected');
        await go;
        call.send('done');
      });
      build(app, stage, pool);
    });
    const first = stage.get('/first', 'first');
    await stage.until('connected');
    if (isFirstOver) {
      go.open();
      await first;
    }
    const { body } = await stage.get('/later', 'later');
    go.open();
    await first;
    return body;
  }

  const inCallback = (pool: Pool) =>
    framework.middleware(
      (_, next) => new Promise((resolve, reject) => pool.query(() => Promise.resolve(next()).then(resolve, reject))),
    );
  const report = async (call: Call): Promise<void> => call.send({ owner: await owner() });

  it.each([
    ['at work', false],
    ['over', true],
  ])(
    'A pool’s callback runs as its own request after `await`, if it is bound, and below a guard or traceContext, with the first request %s',
    async (_, isFirstOver) => {
      const builds: ((app: App, stage: ServerStage, pool: Pool) => unknown)[] = [
        (app, _stage, pool) =>
          app.route('/later', async (call) => {
            await new Promise<void>((resolve) => pool.query(resolve));
            call.send({ owner: await owner() });
          }),
        (app, _stage, pool) =>
          app.route('/later', async (call) => {
            const found = new Promise((resolve) => pool.query(AsyncResource.bind(() => resolve(owner()))));
            call.send({ owner: await found });
          }),
        (app, _stage, pool) => app.route('/later', inCallback(pool), lockOn('k'), report),
        (app, stage, pool) => app.route('/later', inCallback(pool), traceContext({ locks: stage.locks }), report),
      ];
      const owners = [];
      for (const build of builds) owners.push((await later(isFirstOver, build)).owner);
      expect(owners).toEqual(['later', 'later', 'later', 'later']);
    },
  );

  it('cls-rtracer has the request’s own id in what a guard calls and below it', async () => {
    const ids: unknown[] = [];
    const seen = <T>(value: T): T => {
      ids.push(rtracerId());
      return value;
    };
    await later(false, (app, _, pool) =>
      app.route(
        '/later',
        inCallback(pool),
        lockOn(() => seen('k'), { skip: () => seen(false) }),
        (call) => call.send(seen({})),
      ),
    );
    expect(ids).toEqual(['later', 'later', 'later']);
  });
});

describeStyles('The owner in timers and events that outlive or cross requests', (framework) => {
  it('A timer or listener of a request that has ended has no owner, though other requests are at work: a LockScopeError', async () => {
    const [fire, go] = [gate(), gate()];
    const found: Promise<string>[] = [];
    const shared = new EventEmitter();
    const stage = await ServerStage.start(framework, (app, stage) =>
      app
        .route('/first', (call) => {
          found.push(fire.then(() => new Promise<void>((resolve) => setTimeout(resolve, 1))).then(owner));
          found.push(new Promise((resolve) => call.req.socket.once('close', () => resolve(owner()))));
          found.push(
            new Promise((resolve) =>
              shared.once(
                'go',
                AsyncResource.bind(() => resolve(owner())),
              ),
            ),
          );
          // Not bound: it runs in the context of the code that emits, here outside of all requests.
          found.push(new Promise((resolve) => shared.once('go', () => resolve(owner()))));
          call.send('done');
        })
        .route('/second', async (call) => {
          stage.note('second in');
          await go;
          call.send({ owner: await owner() });
        }),
    );
    const client = (await stage.connect()).request({ path: '/first', trace: 'first' });
    await client.receives(/done/);
    const second = stage.get('/second', 'second');
    await stage.until('second in');
    fire.open();
    shared.emit('go');
    await client.hangUp();
    expect(await Promise.all(found)).toEqual(Array.from({ length: 4 }, () => 'ERR_LOCK_SCOPE'));
    go.open();
    expect((await second).body).toEqual({ owner: 'second' });
  });
});
