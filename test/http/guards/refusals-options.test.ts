import { LockStoreError, lock, MemoryStore, runInTrace } from 'reenlock';
import { lockOn } from 'reenlock/express';
import { type Call, describeStyles, type GuardOptions, type Middleware } from '../../support/http/frameworks.ts';
import { ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';

type Skip = NonNullable<GuardOptions['skip']>;
type Answer = Exclude<NonNullable<GuardOptions['handler']>, string>;

const trouble = (): Error => Object.assign(new Error('own trouble'), { status: 418, expose: true });

const throwing =
  (reason: unknown): (() => never) =>
  () => {
    throw reason;
  };

describeStyles('the options of a guard that refuses', (framework) => {
  const start = (guard: GuardOptions, options?: ServerStageOptions, key: (call: Call) => string = () => 'k') =>
    ServerStage.start(framework, options, (app, stage) =>
      app.route(
        '/x',
        framework.lockOn((call) => {
          stage.note('key');
          return key(call);
        }, guard),
        (call) => {
          stage.note('in');
          call.send({ key: call.lock?.key ?? null });
        },
      ),
    );

  /** The answer while another trace holds the key. */
  async function whileHeld(stage: ServerStage): Promise<{ status: number; text: string; code: unknown }> {
    return runInTrace(
      () =>
        lock.run('k', async () => {
          const { status, text } = await stage.get('/x', 'second');
          return { status, text, code: /"code":"(\w+)"/.exec(text)?.[1] };
        }),
      { locks: stage.locks, traceId: 'first' },
    );
  }

  describe('skip', () => {
    it.each<[string, Skip]>([
      ['sync', (call) => call.req.headers['x-skip'] === 'yes'],
      ['async', async (call) => call.req.headers['x-skip'] === 'yes'],
    ])(
      'A skip that is %s lets a request pass whose key is taken, without a call of its key function, and affects no other request',
      async (_, skip) => {
        const stage = await start({ skip, waitMs: 0 });
        const { status, body } = await runInTrace(
          () => lock.run('k', () => stage.get('/x', 'second', { 'X-Skip': 'yes' })),
          { locks: stage.locks, traceId: 'first' },
        );
        expect({ status, body, asked: stage.count('key') }).toEqual({ status: 200, body: { key: null }, asked: 0 });
        expect((await whileHeld(stage)).status).toBe(423);
        expect((await stage.get('/x')).body).toEqual({ key: 'k' });
      },
    );

    it.each<[string, Skip]>([
      ['throws', throwing(trouble())],
      ['rejects', () => Promise.reject(trouble())],
    ])(
      'A skip that %s fails the request with its own error, past the guard’s handler, and without the lock',
      async (_, skip) => {
        const stage = await start({ skip, handler: (_error, call) => call.send('handled', 200) });
        const { status, text } = await stage.get('/x');
        expect(status).toBe(418);
        expect(text).toContain('own trouble');
        expect(stage.journal).toEqual([]);
      },
    );
  });

  describe('handler', () => {
    it.each<[string, Answer]>([
      ['sync', (error, call) => call.send({ code: error.code }, 409)],
      [
        'async',
        async (error, call) => {
          await new Promise((resolve) => setImmediate(resolve));
          call.send({ code: error.code }, 409);
        },
      ],
    ])('A handler that is %s answers in place of the error handlers', async (_, handler) => {
      const stage = await start({ handler, waitMs: 0 });
      expect(await whileHeld(stage)).toMatchObject({ status: 409, code: 'ERR_LOCK_TIMEOUT' });
      expect(stage.count('in')).toBe(0);
    });

    it.each<[string, Answer]>([
      ['throws', throwing(trouble())],
      ['rejects', () => Promise.reject(trouble())],
      ['hands on', (_error, call) => call.fail(trouble())],
    ])('A handler that %s leaves the refusal to the error handlers', async (_, handler) => {
      const stage = await start({ handler, waitMs: 0 });
      expect(await whileHeld(stage)).toMatchObject({ status: 418, text: expect.stringContaining('own trouble') });
      expect(stage.count('in')).toBe(0);
    });

    it('A handler is not called for errors other than those of a lock', async () => {
      const handler: Answer = (_error, call) => call.send('handled', 200);
      const stage = await start({ handler }, {}, throwing(trouble()));
      expect((await stage.get('/x')).status).toBe(418);
    });

    it('A handler is called for each kind of refusal, a bad key included', async () => {
      const stage = await start({ handler: (error, call) => call.send({ code: error.code }, 422) }, {}, () => '');
      const { status, body } = await stage.get('/x');
      expect({ status, body }).toEqual({ status: 422, body: { code: 'ERR_LOCK_KEY' } });
    });
  });

  it.each<[string, GuardOptions, () => string]>([
    ['its `skip` rejects', { skip: () => Promise.reject() }, () => 'k'],
    ['its `skip` rejects with a word of Express’s', { skip: () => Promise.reject('route') }, () => 'k'],
    ['its `skip` rejects with another one', { skip: () => Promise.reject('router') }, () => 'k'],
    ['its key function throws', {}, throwing(undefined)],
    ['its handler throws', { handler: throwing(undefined) }, () => ''],
    ['its handler rejects', { handler: () => Promise.reject(null) }, () => ''],
  ])('A handler never lets a request in without the lock if %s without an error', async (_, guard, key) => {
    const stage = await ServerStage.start(framework, (app, stage) =>
      app.route('/x', framework.lockOn(key, guard), (call) => {
        stage.note('in');
        call.send('');
      }),
    );
    expect([await stage.get('/x'), stage.journal]).toMatchObject([{ status: 500 }, []]);
  });

  describe('statusCode', () => {
    it.each([400, 409, 429, 503])('statusCode %i is the status of a request that timed out', async (statusCode) => {
      const stage = await start({ statusCode, waitMs: 0 });
      expect((await whileHeld(stage)).status).toBe(statusCode);
    });

    // Nest's is a decorator, LockOn.
    if (framework.adapter !== 'nest')
      it('statusCode counts, too, in the guard of another installed copy of this package', async () => {
        let copy: { lockOn: typeof lockOn } = { lockOn };
        jest.isolateModules(() => {
          copy = jest.requireActual<typeof copy>(`reenlock/${framework.adapter}`);
        });
        const guard = copy.lockOn('k', { statusCode: 409, waitMs: 20 });
        const stage = await ServerStage.start(framework, (app) =>
          app.route('/x', guard as Middleware, (call) => call.send('in')),
        );
        expect((await whileHeld(stage)).status).toBe(409);
      });

    it('statusCode is seen by the guard’s handler and by error middleware alike', async () => {
      const stage = await start({
        statusCode: 409,
        waitMs: 0,
        handler: (error, call) => call.send(`${error.status} ${error.statusCode}`, 200),
      });
      expect((await whileHeld(stage)).text).toBe('409 409');
    });

    it('statusCode leaves the status of other refusals alone', async () => {
      const store = new MemoryStore();
      const stage = await start({ statusCode: 409, handler: 'problem' }, { store });
      store.acquire = () => Promise.reject(new LockStoreError('down', { outcome: 'not-applied' }));
      expect((await stage.get('/x')).status).toBe(503);
      await stage.locks.close();
      expect((await stage.get('/x')).status).toBe(503);
      const noKey = await start({ statusCode: 409 }, {}, () => '');
      expect((await noKey.get('/x')).status).toBe(400);
    });
  });
});
