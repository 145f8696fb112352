import type { RequestListener } from 'node:http';
import express from 'express';
import { createLocks, lock, runInTrace } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import { gate } from '../../support/gate.ts';
import { type Call, describeFrameworks } from '../../support/http/frameworks.ts';
import { describeExpress } from '../../support/http/native.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

describeFrameworks('A request to which other code responds while its guard waits', (framework) => {
  it('[answered-meanwhile-01] A request to which a timer responds while its guard waits keeps its whole response, and its handler never runs', async () => {
    const [work, above] = [gate(), gate()];
    const waiting: Call[] = [];
    const stage = await ServerStage.start(framework, (app, stage) => {
      app.route('/holder', framework.lockOn('k'), stage.handler('holder', work));
      const keep = framework.middleware(async (call, next) => {
        waiting.push(call);
        await next();
        await above;
      });
      app.route('/late', keep, framework.lockOn('k'), stage.handler('late'));
    });
    const holder = stage.get('/holder', 'holder');
    await stage.until('holder in');
    const late = stage.get('/late', 'late');
    await stage.until('waiting late k');
    waiting[0]?.res.writeHead(503, { 'Content-Type': 'text/plain' }).end('x'.repeat(5_000_000));
    const { status, text } = await late;
    expect([status, text.length]).toEqual([503, 5_000_000]);
    work.open();
    await holder;
    // Middleware above the guard still runs.
    await stage.free('k');
    above.open();
    expect(stage.journal).not.toContain('late in');
  });

  it('[answered-meanwhile-03] A request to which a timer responds while its guard finds out whether to skip it never reaches its handler', async () => {
    const decided = gate();
    const stage = await ServerStage.start(framework, (app, stage) => {
      const skip = async ({ res }: Call): Promise<boolean> => {
        res.once('close', () => stage.note('answered'));
        res.writeHead(503).end();
        await decided;
        stage.note('skipped');
        return true;
      };
      app.route('/late', framework.lockOn('k', { skip }), stage.handler('late'));
    });
    expect((await stage.get('/late', 'late')).status).toBe(503);
    await stage.until('answered');
    decided.open();
    await stage.until('skipped');
    await stage.get('/nowhere');
    expect(stage.journal).not.toContain('late in');
  });
});

describeExpress('A request to which other code responds while its guard waits, with work in waitUntil', (framework) => {
  it('[answered-meanwhile-02] A request that is answered while its guard waits leaves the queue, even if work was given to waitUntil', async () => {
    const work = gate();
    const stage = await ServerStage.start(framework, (app, { locks }) => {
      const answers = framework.middleware((call, next) => {
        call.lock?.waitUntil(work);
        locks.on('waiting', () => call.res.end());
        return next();
      });
      app.route('/x', framework.lockOn('first'), answers, framework.lockOn('key'), () => {});
    });
    await runInTrace(
      () =>
        lock.run('key', async () => {
          await stage.get('/x', 'second');
          await stage.until('aborted second key');
        }),
      { locks: stage.locks },
    );
    expect(await stage.holder('first')).toBe('second');
    work.open();
  });
});

describe('A request without a real socket', () => {
  it.each(['end', 'close'] as const)(
    'A request that a serverless adapter made up is served, and releases its lock (releaseOn %s)',
    async (releaseOn) => {
      const { IncomingMessage, ServerResponse } = await import('node:http');
      const locks = createLocks();
      const req = new IncomingMessage({ destroyed: false, destroy() {} } as never);
      Object.assign(req, { method: 'GET', url: '/', httpVersionMajor: 1 });
      const res = new ServerResponse(req);
      const app = express();
      app.use(traceContext({ locks }));
      app.get('/', lockOn('key', { releaseOn }), (_req, res) => res.end());
      const ended = new Promise((resolve) => res.once('finish', resolve));
      res.assignSocket({
        write: (_: unknown, __: unknown, done?: () => void) => {
          done?.();
          return true;
        },
        on() {},
        once() {},
        removeListener() {},
        cork() {},
        uncork() {},
        writable: true,
        _writableState: {},
      } as never);
      (app as unknown as RequestListener)(req, res);
      await ended;
      expect(res.statusCode).toBe(200);
      expect(await runInTrace(() => lock.run('key', (hold) => hold.isHeld()), { locks })).toBe(true);
      await locks.close();
    },
  );
});
