import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { PassThrough } from 'node:stream';
import { runInTrace } from 'reenlock';
import { type Call, describeStyles, type GuardOptions, type Handler } from '../../support/http/frameworks.ts';
import { clientLeaves, ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';
import { runScript, type ScriptOptions } from '../../support/processes/processes.ts';
import { recordWarnings, type Warning } from '../../support/warnings.ts';

// It starts processes.
jest.setTimeout(60_000);
const warnings = recordWarnings();

const script = join(__dirname, 'processes/serve.ts');
const root = join(__dirname, '../../..');
const well = { statuses: [200, 200], warnings: [] };

/** What a process said that served two requests under a guard. */
async function serve(file: string, options?: ScriptOptions): Promise<{ statuses: number[]; warnings: Warning[] }> {
  const { stdout, stderr } = await runScript(file, options);
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout);
}

function once(code: string, message: RegExp) {
  return {
    statuses: [200, 200],
    warnings: [
      {
        code,
        message: expect.stringMatching(message),
        detail: `See node_modules/reenlock/docs/reference/errors.md#${code.toLowerCase()}`,
      },
    ],
  };
}

describe('a Locks in memory', () => {
  it.each<[string, ScriptOptions]>([
    ['a cluster worker', { args: ['cluster'] }],
    ['a second instance of PM2', { env: { NODE_APP_INSTANCE: '1' } }],
  ])('A Locks in memory warns once in %s, and serves all the same', async (_, options) => {
    expect(await serve(script, options)).toEqual(once('LOCK_CLUSTER', /other processes are not excluded/));
  });

  it.each<[string, ScriptOptions]>([
    ['a process of its own', {}],
    ['the first instance of PM2, which may be the only one', { env: { NODE_APP_INSTANCE: '0' } }],
  ])('A Locks in memory does not warn in %s', async (_, options) => {
    expect(await serve(script, options)).toEqual(well);
  });
});

describe('cls-rtracer', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'reenlock-rtracer-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** The sources beside a cls-rtracer whose package.json says something else. */
  function beside(change: Record<string, unknown>): string {
    const installed = join(root, 'node_modules/cls-rtracer');
    const copy = join(folder, 'node_modules/cls-rtracer');
    cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true });
    cpSync(installed, copy, { recursive: true, dereference: true });
    symlinkSync(join(root, 'node_modules/uuid'), join(folder, 'node_modules/uuid'));
    const manifest = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8'));
    writeFileSync(join(copy, 'package.json'), JSON.stringify({ ...manifest, ...change }));
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ type: 'commonjs' }));
    const file = join(folder, 'test/http/guards/processes/serve.ts');
    mkdirSync(dirname(file), { recursive: true });
    cpSync(script, file);
    return file;
  }

  it.each([
    ['2.6.3', 'express'],
    ['2.6.3', 'koa'],
    ['1.19.9', 'express'],
  ])('A cls-rtracer that is %s gets one warning, and requests are served (%s)', async (version, framework) => {
    const expected = once('LOCK_RTRACER_OLD', new RegExp(`cls-rtracer 2\\.6\\.4 or newer, got ${version}, `));
    expect(await serve(beside({ version }), { args: [framework] })).toEqual(expected);
  });

  it.each([
    ['newer', { version: '2.10.0' }],
    ['hiding its version', { version: '2.6.3', exports: './index.js' }],
    ['of no version at all', { version: undefined }],
  ])('A cls-rtracer that is %s gets no warning', async (_, change) => {
    expect(await serve(beside(change))).toEqual(well);
  });
});

describeStyles('Set-up', (framework) => {
  const start = (options: ServerStageOptions) =>
    ServerStage.start(framework, options, (app) => app.route('/x', framework.lockOn('k'), (call) => call.send('in')));

  it('A guard without traceContext warns once and refuses its requests: no owner is invented', async () => {
    const stage = await start({ bare: true });
    expect([(await stage.get('/x')).status, (await stage.get('/x')).status]).toEqual([500, 500]);
    expect(warnings()).toEqual(
      once('LOCK_NO_CONTEXT', /Expected `traceContext\(\)` to run before each guard/).warnings,
    );
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
    expect(warnings()).toEqual(once('LOCK_EVENT_STREAM', /held its lock until the stream had ended/).warnings);
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
