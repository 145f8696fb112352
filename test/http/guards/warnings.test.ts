import cluster from 'node:cluster';
import { PassThrough } from 'node:stream';
import threads from 'node:worker_threads';
import { createLocks, lock, runInTrace } from 'reenlock';
import { express5 } from '../../support/http/express-app.ts';
import { type Call, describeStyles, type GuardOptions, type Handler } from '../../support/http/frameworks.ts';
import { koa3 } from '../../support/http/koa-app.ts';
import { clientLeaves, ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';
import { recordWarnings } from '../../support/warnings.ts';

const warnings = recordWarnings();

function once(code: string, message: RegExp): unknown[] {
  const detail = `See node_modules/reenlock/docs/reference/errors.md#${code.toLowerCase()}`;
  return [{ code, message: expect.stringMatching(message), detail }];
}

interface Place {
  readonly isWorker?: boolean;
  readonly isMainThread?: boolean;
  readonly env?: NodeJS.ProcessEnv;
}

it.each<[what: string, place: Place, warns: boolean]>([
  ['warns once in a cluster worker', { isWorker: true }, true],
  ['warns once in a second instance of PM2', { env: { NODE_APP_INSTANCE: '1' } }, true],
  ['warns once in a worker thread', { isMainThread: false, env: { NODE_ENV: 'production' } }, true],
  ['does not warn in a process of its own', { env: { NODE_ENV: 'production' } }, false],
  ['does not warn in the first instance of PM2, which may be the only one', { env: { NODE_APP_INSTANCE: '0' } }, false],
  ['does not warn in a worker thread of a test runner', { isMainThread: false }, false],
])('A Locks in memory %s, and locks all the same', async (_, place, warns) => {
  const { isWorker = false, isMainThread = true } = place;
  const worker = jest.replaceProperty(cluster, 'isWorker', isWorker);
  const thread = jest.replaceProperty(threads, 'isMainThread', isMainThread);
  const env = jest.replaceProperty(process, 'env', { ...process.env, ...place.env });
  for (const locks of [createLocks(), createLocks()]) {
    expect(await runInTrace(() => lock.run('k', () => 'in'), { locks })).toBe('in');
    await locks.close();
  }
  expect(warnings()).toEqual(warns ? once('LOCK_CLUSTER', /the others are not excluded/) : []);
  worker.restore();
  thread.restore();
  env.restore();
});

it.each<[string, () => object, boolean]>([
  ['2.6.3 gets one warning', () => ({ version: '2.6.3' }), true],
  ['1.19.9 gets one warning', () => ({ version: '1.19.9' }), true],
  ['newer gets no warning', () => ({ version: '2.10.0' }), false],
  ['of no version at all gets no warning', () => ({}), false],
  [
    'hiding its version gets no warning',
    () => {
      throw new Error('ERR_PACKAGE_PATH_NOT_EXPORTED');
    },
    false,
  ],
])('A cls-rtracer that is %s', (_, manifest, warns) => {
  jest.doMock('cls-rtracer/package.json', manifest);
  jest.isolateModules(() => {
    for (const { traceContext } of [express5, koa3]) traceContext();
  });
  jest.dontMock('cls-rtracer/package.json');
  const expected = /cls-rtracer 2\.6\.4 or newer, got (2\.6\.3|1\.19\.9), /;
  expect(warnings()).toEqual(warns ? once('LOCK_RTRACER_OLD', expected) : []);
});

describeStyles('Set-up', (framework) => {
  const start = (options: ServerStageOptions) =>
    ServerStage.start(framework, options, (app) => app.route('/x', framework.lockOn('k'), (call) => call.send('in')));

  it('A guard without traceContext warns once and refuses its requests: no owner is invented', async () => {
    const stage = await start({ bare: true });
    expect([(await stage.get('/x')).status, (await stage.get('/x')).status]).toEqual([500, 500]);
    expect(warnings()).toEqual(once('LOCK_NO_CONTEXT', /Expected `traceContext\(\)` to run before each guard/));
  });

  it('A guard without traceContext refuses its requests, too, if the server began to listen within a job', async () => {
    await runInTrace(async () => {
      const stage = await start({ bare: true });
      expect((await stage.get('/x')).status).toBe(500);
    });
    expect(warnings().map(({ code }) => code)).toEqual(['LOCK_NO_CONTEXT']);
  });
});

describeStyles('An event stream', (framework) => {
  const { lockOn } = framework;

  const start = (guard: GuardOptions | undefined, handler: Handler): Promise<ServerStage> =>
    ServerStage.start(framework, { abortGraceMs: 0 }, (app) =>
      app.route('/x', ...(guard === undefined ? [] : [lockOn('k', guard)]), (call) => handler(call)),
    );

  const byWriting: Handler = ({ res, detach }) => {
    detach();
    res.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' }).write('data: 1\n\n');
  };
  const byPiping: Handler = (call) => {
    call.res.setHeader('Content-Type', 'text/event-stream');
    const source = new PassThrough();
    source.write('data: 1\n\n');
    call.stream(source);
    return source;
  };
  const byEnding: Handler = ({ res, detach }) => {
    detach();
    res.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('data: 1\n\n');
  };
  const byEndingAfterRelease: Handler = async (call: Call) => {
    call.detach();
    await call.lock?.release();
    call.res.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('data: 1\n\n');
  };

  it.each([
    ['is written and its client leaves', byWriting],
    ['is piped and its client leaves', byPiping],
  ])('An event stream under a guard gets one warning if it %s', async (_, handler) => {
    const stage = await start({}, handler);
    for (const trace of ['first', 'second']) {
      const client = (await stage.connect()).request({ path: '/x', trace });
      expect((await client.receives(/^HTTP\/1\.1 (\d+)[\s\S]*data: 1/))[1]).toBe('200');
      await client.hangUp();
      await stage.free('k');
    }
    expect(warnings()).toEqual(once('LOCK_EVENT_STREAM', /held its lock until the stream had ended/));
  });

  it('An event stream under a guard gets one warning if the handler ends it', async () => {
    const stage = await start({}, byEnding);
    for (const trace of ['first', 'second']) {
      const { status, text } = await stage.get('/x', trace);
      expect([status, text]).toEqual([200, 'data: 1\n\n']);
    }
    expect(warnings().map(({ code }) => code)).toEqual(['LOCK_EVENT_STREAM']);
  });

  it.each<[string, (call: Call, stage: ServerStage) => unknown]>([
    ['one of its locks was released before', (call) => call.locks?.get('b')?.release()],
    [
      'its lock was lost before',
      async ({ locks }, { store }) => {
        await locks?.get('b')?.release();
        await store.forceRelease('a', (await store.inspect('a')).holds[0]?.fence ?? 0);
        while (locks?.get('a')?.isHeld()) await new Promise(setImmediate);
      },
    ],
  ])('An event stream under a guard gets a warning, too, if %s', async (_, lose) => {
    const stage = await ServerStage.start(framework, (app, stage) => {
      const guard = lockOn(() => ['a', 'b']);
      app.route('/x', guard, async (call) => {
        await lose(call, stage);
        await byEnding(call);
      });
    });
    expect((await stage.get('/x')).text).toBe('data: 1\n\n');
    expect(warnings().map(({ code }) => code)).toEqual(['LOCK_EVENT_STREAM']);
  });

  it('An event stream that ended before its guard gets no warning, though the handler works on under the lock', async () => {
    const complain = jest.spyOn(console, 'error');
    const stage = await ServerStage.start(framework, (app, stage) => {
      const ends = framework.middleware(async (call, next) => {
        await byEnding(call);
        return next();
      });
      app.route('/x', ends, lockOn('k'), async (call) => {
        // Its framework must not respond as well.
        call.detach();
        if (!call.res.closed) await new Promise((resolve) => call.res.once('close', resolve));
        stage.note('first goes on');
      });
    });
    expect((await stage.get('/x')).text).toBe('data: 1\n\n');
    // Nest's guard runs after the middleware that opens the scope: here after its end.
    if (framework.awaitsHandlers && framework.adapter !== 'nest') await stage.until('first goes on');
    await stage.free('k');
    expect(warnings()).toEqual([]);
    expect(complain).not.toHaveBeenCalled();
    complain.mockRestore();
  });

  it('An event stream whose client disconnects before it begins gets no warning', async () => {
    const stage: ServerStage = await start({}, async (call) => {
      call.res.setHeader('Content-Type', 'text/event-stream');
      stage.note('first in');
      await clientLeaves(stage);
      await byEndingAfterRelease(call);
    });
    const client = (await stage.connect()).request({ path: '/x', trace: 'first' });
    await stage.until('first in');
    await client.hangUp();
    await stage.until('released first k');
    expect(warnings()).toEqual([]);
  });

  it.each<[string, GuardOptions | undefined, Handler]>([
    ['without a guard', undefined, byEnding],
    ['after its lock was released', {}, byEndingAfterRelease],
    ['under a guard that asks to hold on to the close', { releaseOn: 'close' }, byEnding],
    ['of a request that skipped the lock', { skip: () => true }, byEnding],
    ['that is accepted, but not sent,', {}, (call) => call.send({ text: 'event-stream' })],
  ])('There is no warning of an event stream if it is %s', async (_, guard, handler) => {
    const stage = await start(guard, handler);
    expect((await stage.get('/x', 'first', { Accept: 'text/event-stream' })).status).toBe(200);
    await stage.free('k');
    expect(warnings()).toEqual([]);
  });
});
