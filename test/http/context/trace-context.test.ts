import { id as rtracerId } from 'cls-rtracer';
import { createLocks, currentTrace, getLock, runInTrace, traceHeaders } from 'reenlock';
import type { TraceContextOptions } from '../../../src/http/traced-request.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { type App, type Call, describeFrameworks } from '../../support/http/frameworks.ts';
import { clientLeaves, ServerStage } from '../../support/http/server-stage.ts';

const codeAsBody = (app: App): App =>
  app.onError((error, call) => call.send({ code: error.code }, error.status ?? 500));

describeFrameworks('traceContext', (framework) => {
  const { lockOn, traceContext } = framework;

  it('traceContext without `locks`, alongside a `Locks` that nobody configured, is an error and no lock in memory', async () => {
    const stage = await ServerStage.start(framework, { bare: true }, (app, stage) =>
      codeAsBody(app)
        .use(traceContext())
        .route('/x', lockOn('k'), () => stage.note('in')),
    );
    const { status, body } = await stage.get('/x');
    expect({ status, body }).toEqual({ status: 500, body: { code: 'ERR_LOCK_CONFIG' } });
    expect(stage.journal).toEqual([]);
  });

  it('traceContext with other `locks` than the outer one is an error', async () => {
    const others = createLocks();
    const stage = await ServerStage.start(framework, (app, stage) =>
      codeAsBody(app)
        .use(traceContext({ locks: others }))
        .route('/x', lockOn('k'), () => stage.note('in')),
    );
    const { status, body } = await stage.get('/x');
    expect({ status, body }).toEqual({ status: 500, body: { code: 'ERR_LOCK_CONFIG' } });
    expect(stage.journal).toEqual([]);
    await others.close();
  });

  it.each<[string, TraceContextOptions, TraceContextOptions]>([
    ['trust', { trust: 'all' }, { trust: 'none' }],
    ['bareTraceId', {}, { bareTraceId: 'branch' }],
    ['holdName', { holdName: 'hold' }, { holdName: 'held' }],
  ])(
    'traceContext with another `%s` than the outer one, which would have no effect, is an error',
    async (name, outer, inner) => {
      const stage = await ServerStage.start(framework, { bare: true }, (app, stage) =>
        app
          .onError((error, call) => call.send({ code: error.code, message: error.message }, error.status ?? 500))
          .use(traceContext({ locks: stage.locks, ...outer }), traceContext({ abortGraceMs: undefined, ...inner }))
          .route('/x', (call) => call.send('in')),
      );
      const { status, body } = await stage.get('/x');
      expect({ status, body }).toMatchObject({ status: 500, body: { code: 'ERR_LOCK_CONFIG' } });
      expect((body as { message: string }).message).toContain(`\`${name}\``);
    },
  );

  it('traceContext with the same options as the outer one, written once more, is as one', async () => {
    const options = () => ({ trust: { secrets: ['a-secret-that-all-services-have-in-common'], audience: 'stock' } });
    const stage = await ServerStage.start(framework, { bare: true }, (app, stage) =>
      app
        .use(traceContext({ locks: stage.locks, ...options() }), traceContext(options()))
        .route('/x', lockOn('k'), (call) => call.send('in')),
    );
    expect((await stage.get('/x')).status).toBe(200);
  });

  it('traceContext mounted twice, and again in a sub-application, is one scope with one id', async () => {
    const report = async (call: Call): Promise<void> => {
      const inner = await getLock('k').run((hold) => hold.fence);
      call.send({ trace: currentTrace()?.traceId, rtracer: rtracerId(), isSame: inner === call.lock?.fence });
    };
    const stage = await ServerStage.start(framework, (app, stage) => {
      app.use(traceContext({ locks: stage.locks }));
      app.mount('/sub', (sub) =>
        sub.use(traceContext({ locks: stage.locks }), traceContext()).route('/x', lockOn('k'), report),
      );
      app.route('/x', lockOn('k'), report);
    });
    for (const path of ['/x', '/sub/x']) {
      const { body, headers } = await stage.get(path, 'my-trace');
      expect(body).toEqual({ trace: 'my-trace', rtracer: 'my-trace', isSame: true });
      expect(headers['x-trace-id']).toBe('my-trace');
      await stage.free('k');
    }
    expect([stage.count('granted my-trace k'), stage.count('released my-trace k')]).toEqual([2, 2]);
  });

  it('The received traceparent is left to the tracer: the headers for called services do not have it', async () => {
    const stage = await ServerStage.start(framework, (app) => app.route('/x', (call) => call.send(traceHeaders())));
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    expect((await stage.get('/x', 'one', { traceparent })).body).toEqual({
      'X-Trace-Id': 'one',
      'X-Trace-Branch': 'one',
    });
  });

  it('A job within a request sends on what the request received: header and signature', async () => {
    const trust = { secrets: ['a-secret-that-all-services-have-in-common'], audience: 'stock' };
    const stage = await ServerStage.start(framework, { bare: true }, (app, stage) =>
      app
        .use(traceContext({ locks: stage.locks, headerName: 'X-Own-Id', trust }))
        .route('/x', async (call) => call.send(await runInTrace(() => traceHeaders()))),
    );
    const { body, headers } = await stage.get('/x', 'not-this');
    expect(body).toEqual({
      'X-Own-Id': headers['x-own-id'],
      'X-Trace-Branch': expect.stringMatching(new RegExp(`^${headers['x-own-id']}/\\w+$`)),
      'X-Trace-Signature': expect.stringMatching(/^v2\./),
    });
  });

  it.each([
    ['of its `locks`', undefined, 'X-Request-Id'],
    ['that it is given, which overrides that of its `locks`', 'X-Own-Id', 'X-Own-Id'],
  ])('traceContext reads, returns and sends the header %s', async (_, headerName, expected) => {
    const stage = await ServerStage.start(framework, { bare: true, headerName: 'X-Request-Id' }, (app, stage) =>
      app.use(traceContext({ locks: stage.locks, headerName })).route('/x', (call) => call.send(traceHeaders())),
    );
    const sent = { 'x-request-id': 'not-this', [expected]: 'this' };
    const { body, headers } = await stage.get('/x', 'nor-this', sent);
    expect(body).toEqual({ [expected]: 'this', 'X-Trace-Branch': 'this' });
    const named = ['X-Own-Id', 'X-Request-Id', 'X-Trace-Id'].filter(
      (name) => headers[name.toLowerCase()] !== undefined,
    );
    expect([named, headers[expected.toLowerCase()]]).toEqual([[expected], 'this']);
  });

  it('The abortGraceMs of traceContext overrides that of its `locks`', async () => {
    const clock = new ManualClock();
    const stage = await ServerStage.start(framework, { bare: true, abortGraceMs: 1_000, clock }, (app, stage) =>
      app.use(traceContext({ locks: stage.locks, abortGraceMs: 4_000 })).route('/x', lockOn('k'), async () => {
        await clientLeaves(stage);
        await new Promise(() => {});
      }),
    );
    const client = (await stage.connect()).request({ path: '/x', trace: 'first' });
    await stage.until('granted first k');
    await client.hangUp();
    await stage.until('first hears');
    await clock.advance(3_999);
    expect(await stage.holder('k')).toBe('first');
    await clock.advance(1);
    await stage.until('lost first k');
  });

  it('The trace id is in a response whose head is written before its end, unless the handler has set one', async () => {
    const stage = await ServerStage.start(framework, (app) =>
      app
        .route('/written', (call) => {
          call.detach();
          call.res.writeHead(200).write('one, ');
          call.res.end('two');
        })
        .route('/own', (call) => {
          call.res.setHeader('X-Trace-Id', 'of the handler');
          call.send('own');
        }),
    );
    expect((await stage.get('/written', 'my-trace')).headers['x-trace-id']).toBe('my-trace');
    expect((await stage.get('/own', 'my-trace')).headers['x-trace-id']).toBe('of the handler');
  });

  it('The trace has ended, and its signal aborted, once the request has its response', async () => {
    let trace: ReturnType<typeof currentTrace>;
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/x', (call) => {
        trace = currentTrace();
        call.send({ isOver: trace?.hasEnded, aborted: trace?.signal.aborted });
      }),
    );
    expect((await stage.get('/x')).body).toEqual({ isOver: false, aborted: false });
    expect([trace?.hasEnded, trace?.signal.aborted]).toEqual([true, true]);
  });

  it('The trace id is in every response: success, 404, error, and one that names its own headers', async () => {
    const stage = await ServerStage.start(framework, (app) =>
      app
        .route('/ok', (call) => call.send('ok'))
        .route('/empty', (call) => call.send(null, 204))
        .route('/throws', () => {
          throw new Error('no');
        })
        .route('/throws-later', async (call) => {
          await Promise.resolve();
          call.fail(Object.assign(new Error('no'), { status: 418, headers: { 'X-Own': 'yes' } }));
        }),
    );
    const paths = ['/ok', '/empty', '/nowhere', '/throws', '/throws-later'];
    const answers = await Promise.all(paths.map((path) => stage.get(path, 'my-trace')));
    expect(answers.map(({ status, headers }) => [status, headers['x-trace-id']])).toEqual([
      [200, 'my-trace'],
      [204, 'my-trace'],
      [404, 'my-trace'],
      [500, 'my-trace'],
      [418, 'my-trace'],
    ]);
    expect(answers.at(-1)?.headers['x-own']).toBe('yes');
  });

  it('traceContext below middleware that has begun the response goes on, without the header', async () => {
    const begins = framework.middleware((call, next) => {
      call.detach();
      call.res.write('begun, ');
      return next();
    });
    const stage = await ServerStage.start(framework, { bare: true }, (app, stage) =>
      app.use(begins, traceContext({ locks: stage.locks })).route('/x', lockOn('k'), endLocked),
    );
    expect((await stage.get('/x')).text).toBe('begun, true');
    await stage.free('k');
  });

  it('traceContext below middleware that has responded leaves the response and its connection alone, and no lock stays held', async () => {
    const answers = framework.middleware((call, next) => {
      call.detach();
      call.res.end('answered');
      return next();
    });
    const stage = await ServerStage.start(framework, { bare: true }, (app, stage) =>
      app.use(answers, traceContext({ locks: stage.locks })).route('/x', lockOn('k'), endLocked),
    );
    const client = await stage.connect();
    await client.request({ path: '/x' }).receives(/answered/);
    await client.request({ path: '/x' }).receives(/answered.*answered/s);
    await stage.free('k');
  });
});

function endLocked(call: Call): void {
  call.res.end(String(call.lock?.isHeld()));
}
