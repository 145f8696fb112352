import { currentTrace, getLock, LockConfigError, type LockError, LockScopeError, lock, traceHeaders } from 'reenlock';
import { gate } from '../../support/gate.ts';
import { type Call, describeStyles } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { recordWarnings } from '../../support/warnings.ts';

const warnings = recordWarnings();
const codes = () => warnings().map(({ code }) => code);

describeStyles('a guard hints at mistakes:', (framework) => {
  const { lockOn } = framework;

  if (framework.adapter !== 'node') {
    it('A key with a missing part warns once for each route, with the route’s pattern and the key’s form', async () => {
      const key = (call: Call) => `order:${call.params.id}:${(call.req as { tenant?: string }).tenant}`;
      const stage = await ServerStage.start(framework, (app) => {
        const guard = lockOn(key);
        app.route('/orders/:id', guard, (call) => call.send('in'));
        app.route('/orders/:id/items', guard, (call) => call.send('in'));
      });
      for (const path of ['/orders/1', '/orders/2', '/orders/1/items', '/orders/3']) await stage.get(path);
      expect(warnings()).toEqual(
        ['/orders/:id', '/orders/:id/items'].map((route) => ({
          code: 'LOCK_KEY_SEGMENT',
          detail: 'See node_modules/reenlock/docs/reference/errors.md#lock_key_segment',
          message: expect.stringContaining(`got \`order:*:undefined\` on the route \`GET ${route}\``),
        })),
      );
    });

    it('An error of a guard has the route in its stack, not a line of the application', async () => {
      const errors: Error[] = [];
      const stage = await ServerStage.start(framework, (app) =>
        app
          .onError((error, call) => {
            errors.push(error as Error);
            call.send('refused', 500);
          })
          .route(
            '/orders/:id',
            lockOn((call) => call.params.missing),
            (call) => call.send('in'),
          )
          .route(
            '/lists/:id',
            lockOn((call) => ['a', call.params.missing]),
            (call) => call.send('in'),
          )
          .route('/busy/:id', lockOn('k'), lockOn('k', { reentrant: false }), (call) => call.send('in')),
      );
      for (const path of ['/orders/1', '/lists/1', '/busy/1']) await stage.get(path);
      expect(errors.map(({ stack }) => stack)).toEqual([
        'LockKeyError: Expected the lock key to be a string, number or bigint, got undefined: the value that it is made from is probably missing\n    at lockOn (GET /orders/:id)',
        'LockKeyError: Expected the lock key `keys[1]` to be a string, number or bigint, got undefined: the value that it is made from is probably missing\n    at lockOn (GET /lists/:id)',
        expect.stringMatching(/^LockConfigError: .*\n {4}at lockOn \(GET \/busy\/:id\)$/),
      ]);
    });
  }

  const mistakes: [string, object, object, boolean][] = [
    ["an acquire with `reentrant: false` on its guard's key", {}, { reentrant: false }, true],
    ['an acquire on the key of its guard that has `reentrant: false`', { reentrant: false }, {}, true],
    ['a reader with `reentrant: false` beside its guard that writes', {}, { reentrant: false, mode: 'read' }, true],
    [
      'a reader with `reentrant: false` beside its guard that reads',
      { mode: 'read' },
      { reentrant: false, mode: 'read' },
      false,
    ],
    [
      'an acquire for a permit of its own, all of which its guard has',
      { permits: 1 },
      { permits: 1, reentrant: false },
      true,
    ],
    [
      'an acquire for a permit of its own beside that of its guard',
      { permits: 2 },
      { permits: 2, reentrant: false },
      false,
    ],
    ['an acquire with `reentrant: false` that does not wait', {}, { reentrant: false, waitMs: 0 }, false],
  ];

  it.each(mistakes)(
    '%s waits for its own request: it fails at once if it would wait in vain (%j, %j, %j)',
    async (_, guard, options, fails) => {
      const errors: unknown[] = [];
      const stage = await ServerStage.start(framework, (app) =>
        app.route('/x', lockOn('k', guard), async (call) => {
          await getLock('k', { waitMs: Number.POSITIVE_INFINITY, ...options })
            .run(() => {})
            .catch((error: unknown) => errors.push(error));
          call.send('in');
        }),
      );
      await stage.get('/x');
      if (fails) expect(errors).toEqual([expect.any(LockConfigError)]);
      else
        expect((errors as LockError[]).map(({ code }) => code).filter((code) => code !== 'ERR_LOCK_TIMEOUT')).toEqual(
          [],
        );
      expect(stage.count('waiting first k')).toBe(0);
    },
  );

  it("With `reentrant: false` as the default, an acquire on its guard's key fails at once, until both say `reentrant: 'trace'`", async () => {
    const errors: unknown[] = [];
    const stage = await ServerStage.start(framework, { reentrant: false }, (app) => {
      for (const reentrant of [undefined, 'trace'] as const)
        app.route(`/${reentrant}`, lockOn('k', { reentrant }), async (call) => {
          for (const ofCode of [undefined, 'trace'] as const)
            await getLock('k', { reentrant: ofCode })
              .run(() => {})
              .catch((error: Error) => errors.push(error.message));
          call.send('in');
        });
    });
    await stage.get('/undefined');
    expect(errors.splice(0)).toEqual([
      expect.stringMatching(/both have `reentrant: false`.* give both `reentrant: 'trace'`$/),
      expect.stringMatching(/its guard has `reentrant: false`.* give the guard `reentrant: 'trace'`$/),
    ]);
    await stage.get('/trace');
    expect(errors).toEqual([
      expect.stringMatching(/this acquire has `reentrant: false`.* give this acquire `reentrant: 'trace'`$/),
    ]);
  });

  it("A hold with `reentrant: false` is granted after the handler has released its guard's hold", async () => {
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/x', lockOn('k'), async (call) => {
        await call.lock?.release();
        call.send(await getLock('k', { reentrant: false }).run((hold) => String(hold.isHeld())));
      }),
    );
    expect((await stage.get('/x')).text).toBe('true');
  });

  it('Work that goes on after its guard has released the lock warns once when it locks or calls a service', async () => {
    const [answered, over] = [gate(), gate()];
    const late: unknown[] = [];
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/:step', lockOn('k'), (call) => {
        const work = async (): Promise<void> => {
          await answered;
          const { signal } = currentTrace() as { signal: AbortSignal };
          if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
          if (call.params.step === 'calls') traceHeaders();
          else late.push(await lock.acquire('other').catch((error: unknown) => error));
          over.open();
        };
        void work();
        call.send('early');
        answered.open();
      }),
    );
    await stage.get('/locks');
    await over;
    expect(late).toEqual([expect.any(LockScopeError)]);
    const route = framework.adapter === 'node' ? '' : ' on the route `GET /:step`';
    expect(warnings()).toEqual([
      {
        code: 'LOCK_LATE_WORK',
        message: `Expected the work of a guarded request to end before its response, got calls after its guard had released the lock${route}: await the work before you respond, or pass it to \`hold.waitUntil\``,
        detail: expect.stringMatching(/^ {4}at .*hints\.test\.ts:\d+:\d+\)?\nSee .*errors\.md#lock_late_work$/),
      },
    ]);
    await stage.get('/calls');
    expect(codes()).toEqual(['LOCK_LATE_WORK']);
  });

  it("Work that goes on after the handler has released its guard's hold, such as an event stream, does not warn", async () => {
    const late: unknown[] = [];
    const over = gate();
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/x', lockOn('k'), async (call) => {
        await call.lock?.release();
        const { signal } = currentTrace() as { signal: AbortSignal };
        signal.addEventListener('abort', async () => {
          late.push(await lock.acquire('other').catch((error: unknown) => error));
          over.open();
        });
        call.send('streamed');
      }),
    );
    await stage.get('/x');
    await over;
    expect(late).toEqual([expect.any(LockScopeError)]);
    expect(codes()).toEqual([]);
  });

  it('Work that `lock.run` or `waitUntil` keeps the lock for is not late', async () => {
    const over = gate();
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/x', lockOn('k'), (call) => {
        const work = async (): Promise<void> => {
          await over;
          traceHeaders();
          await lock.run('k', () => lock.run('other', () => {}));
        };
        call.send('early');
        call.lock?.waitUntil(work());
      }),
    );
    await stage.get('/x');
    over.open();
    await stage.free('k', 'other');
    expect(stage.count('released first other')).toBe(1);
    expect(codes()).toEqual([]);
  });
});
