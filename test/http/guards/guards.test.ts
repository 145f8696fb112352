import { getLock } from 'reenlock';
import * as express from 'reenlock/express';
import * as fastify from 'reenlock/fastify';
import * as hono from 'reenlock/hono';
import * as koa from 'reenlock/koa';
import * as nest from 'reenlock/nest';
import * as node from 'reenlock/node';
import { gate } from '../../support/gate.ts';
import { type Call, describeFrameworks, type GuardOptions } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

const adapters = { node, express, koa, fastify, hono, nest: { lockOn: nest.LockOn } };

describeFrameworks('a guard', (framework) => {
  const { lockOn } = framework;

  it.each([
    ['a constant', 'stock', 'stock'],
    ['a function', (call: Call) => `order:${call.params.id}`, 'order:42'],
    ['an async function', async (call: Call) => call.params.id, '42'],
    ['a function that gives a number', () => 42, '42'],
    ['a function that gives a bigint', () => 42n, '42'],
  ])('A guard takes its key from %s, and holds it while the handler runs', async (_, key, name) => {
    const stage = await ServerStage.start(framework, (app, stage) =>
      app.route('/orders/:id', lockOn(key), async (call) => {
        call.send({ key: call.lock?.key, isHeld: call.lock?.isHeld(), holder: await stage.holder(name) });
      }),
    );
    const { status, body } = await stage.get('/orders/42');
    expect({ status, body }).toEqual({ status: 200, body: { key: name, isHeld: true, holder: 'first' } });
    await stage.free(name);
  });

  it('A guard lets no request in without its lock if its key, or skip, is a foreign promise that breaks the rules', async () => {
    // Answers nothing, and calls back twice.
    const foreign = <T>(value: T): PromiseLike<T> =>
      ({
        // biome-ignore lint/suspicious/noThenProperty: it is what is tested
        then: (call: (value: T) => void) => void setImmediate(() => [call(value), call(value)]),
      }) as unknown as PromiseLike<T>;
    const stage = await ServerStage.start(framework, (app, stage) =>
      app.route(
        '/x',
        lockOn(() => foreign('k'), { skip: () => foreign(false) }),
        async (call) => {
          call.send({ key: call.lock?.key, holder: await stage.holder('k') });
        },
      ),
    );
    expect((await stage.get('/x')).body).toEqual({ key: 'k', holder: 'first' });
    await stage.free('k');
    expect(stage.count('granted first k')).toBe(1);
  });

  it('A guard takes all of its keys or none: it releases what it got before it responds with its refusal', async () => {
    const [work, answer] = [gate(), gate()];
    const stage = await ServerStage.start(framework, (app, stage) => {
      app.route('/b', lockOn('b'), stage.handler('b', work));
      const handler: GuardOptions['handler'] = async (_, call) => {
        stage.note('ab refused');
        await answer;
        call.send('refused', 423);
      };
      app.route(
        '/ab',
        lockOn(() => ['a', 'b'], { waitMs: 200, handler }),
        () => stage.note('ab in'),
      );
    });
    const first = stage.get('/b', 'first');
    await stage.until('b in');
    const second = stage.get('/ab', 'second');
    await stage.until('ab refused');
    await stage.free('a');
    expect(await stage.holder('b')).toBe('first');
    answer.open();
    expect((await second).status).toBe(423);
    work.open();
    expect((await first).status).toBe(200);
    stage.expectOrder('granted second a', 'timeout second b', 'released second a');
    expect(stage.journal).not.toContain('ab in');
  });

  it('A guard adds its holds to those of the guard before: the newest one is for all of its keys', async () => {
    const seen: unknown[] = [];
    const maps: Call['locks'][] = [];
    const see = (call: Call): unknown => {
      maps.push(call.locks);
      return seen.push([call.lock?.key, ...(call.locks?.keys() ?? [])]);
    };
    const stage = await ServerStage.start(framework, (app) =>
      app.route(
        '/x',
        lockOn('a'),
        framework.middleware((call, next) => {
          see(call);
          return next();
        }),
        lockOn(() => ['b', 'c']),
        (call) => {
          see(call);
          call.send('done');
        },
      ),
    );
    await stage.get('/x');
    expect(seen).toEqual([
      ['a', 'a'],
      ['b, c', 'a', 'b', 'c'],
    ]);
    // Who has one keeps what it was.
    expect([...(maps[0]?.keys() ?? [])]).toEqual(['a']);
  });

  it('Two guards with one key in different categories have a hold each there, and work that is kept for each keeps both locks', async () => {
    const work = gate();
    const seen: unknown[] = [];
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/x', lockOn('7', { category: 'order' }), lockOn('7', { category: 'wallet' }), (call) => {
        for (const [key, hold] of call.locks ?? []) {
          seen.push(key, hold.fence);
          hold.waitUntil(work);
        }
        call.send([call.locks?.get('7') === call.lock]);
      }),
    );
    expect((await stage.get('/x')).body).toEqual([true]);
    const { locks } = stage;
    const fences = await Promise.all(
      ['order', 'wallet'].map(async (category) => (await locks.inspect('7', { category })).holds[0]?.fence),
    );
    expect(seen).toEqual(['7', fences[1], 'order|7', fences[0]]);
    work.open();
    await stage.until('released first 7', 2);
  });

  it('A guard leaves its released hold where handlers look for it, and the hold reports that it is released', async () => {
    const seen: unknown[] = [];
    const see = ({ lock, locks }: Call): unknown =>
      seen.push([lock?.key, lock?.isHeld(), ...[...(locks ?? [])].map(([key, hold]) => [key, hold.isHeld()])]);
    const stage = await ServerStage.start(framework, (app, stage) =>
      app.route('/x', lockOn('a'), lockOn('b'), async (call) => {
        await call.lock?.release();
        see(call);
        stage.locks.on('released', ({ key }) => {
          if (key !== 'a') return;
          see(call);
          stage.note('seen');
        });
        call.send('done');
      }),
    );
    await stage.get('/x');
    await stage.until('seen');
    expect(seen).toEqual([
      ['b', false, ['a', true], ['b', false]],
      ['b', false, ['a', false], ['b', false]],
    ]);
  });

  it('A guard that is skipped leaves the holds of the guard before where handlers look for them', async () => {
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/x', lockOn('outer'), lockOn('inner', { skip: () => true }), (call) =>
        call.send([call.lock?.key, ...(call.locks?.keys() ?? [])]),
      ),
    );
    expect((await stage.get('/x')).body).toEqual(['outer', 'outer']);
  });

  it.each([
    ['its key', 'a', ['stock|a']],
    ['each of its keys', ['a', 'b'], ['stock|a', 'stock|b']],
  ])('A guard takes %s within its category', async (_, keys, ids) => {
    const stage = await ServerStage.start(framework, (app, stage) =>
      app.route(
        '/x',
        lockOn(() => keys, { category: 'stock' }),
        async (call) => call.send(await Promise.all([...ids, 'a', 'b'].map((id) => stage.holder(id)))),
      ),
    );
    expect((await stage.get('/x')).body).toEqual([...ids.map(() => 'first'), null, null]);
    await stage.free(...ids);
  });

  it('getLock and a second guard re-enter a guard: one fence, one grant, one release', async () => {
    const stage = await ServerStage.start(framework, (app) =>
      app.route(
        '/orders/:id',
        lockOn((call) => call.params.id),
        lockOn((call) => call.params.id),
        async (call) => {
          const inner = await getLock('42').run(async (hold) => ({
            fence: hold.fence,
            count: getLock('42').holdCount(),
            deeper: await getLock('42').run((deeper) => deeper.fence),
          }));
          call.send({ outer: call.lock?.fence, ...inner, after: getLock('42').isHeld() });
        },
      ),
    );
    const { body } = await stage.get('/orders/42');
    expect(body).toEqual({ outer: body.outer, fence: body.outer, count: 3, deeper: body.outer, after: true });
    await stage.free('42');
    expect([stage.count('granted first 42'), stage.count('released first 42')]).toEqual([1, 1]);
  });

  it.each(['first', 'second'])(
    'A guard refuses a request that has lost the lock of its %s guard while it waited for that of its third, which is released',
    async (which) => {
      const [work, answer] = [gate(), gate()];
      const stage = await ServerStage.start(framework, (app, stage) => {
        const handler: GuardOptions['handler'] = async (error, call) => {
          stage.note('all refused');
          await answer;
          call.send('refused', error.status);
        };
        app
          .route('/third', lockOn('third'), async (call) => {
            await work;
            call.send('third');
          })
          .route('/all', lockOn('first'), lockOn('second'), lockOn('third', { handler }), () => stage.note('all in'));
      });
      const holder = stage.get('/third', 'holder');
      await stage.until('granted holder third');
      const all = stage.get('/all', 'all');
      await stage.until('waiting all third');
      await stage.store.forceRelease(which, (await stage.store.inspect(which)).holds[0]?.fence ?? 0);
      await stage.until(`lost all ${which}`);
      work.open();
      await stage.until('all refused');
      await stage.free('third');
      answer.open();
      expect([(await holder).status, (await all).status]).toEqual([200, 503]);
      expect(stage.journal).not.toContain('all in');
      await stage.free('first', 'second');
    },
  );

  it('A guard lets in a request that has released the lock of an earlier guard', async () => {
    const release = framework.middleware(async (call, next) => {
      await call.lock?.release();
      return next();
    });
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/ab', lockOn('a'), release, lockOn('b'), (call) => call.send({ newest: call.lock?.key })),
    );
    expect((await stage.get('/ab')).body).toEqual({ newest: 'b' });
  });

  it.each([
    ['undefined', undefined],
    ['null', null],
    ['an empty string', ''],
    ['a list with a hole', ['a', undefined]],
    ['an empty list', []],
    ['NaN', Number.NaN],
    ['more than 4 KB', 'x'.repeat(4097)],
  ])('A guard answers 400, locks nothing and runs no handler if its key is %s', async (_, key) => {
    const stage = await ServerStage.start(framework, (app, stage) =>
      app.route(
        '/x',
        lockOn(() => key),
        () => stage.note('in'),
      ),
    );
    const { status, text } = await stage.get('/x');
    expect(status).toBe(400);
    expect(text).toMatch(/Expected the (lock keys?.*|guard) to/);
    expect(stage.journal).toEqual([]);
  });

  it('A guard passes what its key function throws to the error handler unchanged', async () => {
    const stage = await ServerStage.start(framework, (app, stage) =>
      app
        .route(
          '/sync',
          lockOn(() => {
            throw Object.assign(new Error('no such order'), { status: 404 });
          }),
          () => stage.note('in'),
        )
        .route(
          '/async',
          lockOn(() => Promise.reject(Object.assign(new Error('no such order'), { status: 404 }))),
          () => stage.note('in'),
        ),
    );
    expect([(await stage.get('/sync')).status, (await stage.get('/async')).status]).toEqual([404, 404]);
    expect(stage.journal).toEqual([]);
  });

  it.each(['order:${id}', '/orders/:id', ':id', 'order:{id}'])(
    'A guard refuses the constant key %s when it is built: it was meant as a template',
    (key) => {
      expect(() => lockOn(key)).toThrow(expect.objectContaining({ code: 'ERR_LOCK_CONFIG' }));
    },
  );

  it.each([
    ['empty', '', 'ERR_LOCK_KEY'],
    ['longer than 4 KB', 'x'.repeat(4097), 'ERR_LOCK_KEY'],
    ['undefined', undefined, 'ERR_LOCK_CONFIG'],
    ['null', null, 'ERR_LOCK_CONFIG'],
    ['a number', 42, 'ERR_LOCK_CONFIG'],
    ['a list', ['a', 'b'], 'ERR_LOCK_CONFIG'],
  ])('A guard refuses a constant key when it is built, not with each request, if it is %s', (_, key, code) => {
    // The framework's own, and not that of the helper: it makes a function of each key.
    const own: (key: never) => unknown = adapters[framework.adapter].lockOn;
    expect(() => own(key as never)).toThrow(expect.objectContaining({ code }));
  });
});
