import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import express5 from 'express';
import { createLocks, lock, MemoryStore, runInTrace } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import { isTrusted } from '../../../src/http/trust.ts';
import { gate } from '../../support/gate.ts';
import { type Call, describeFrameworks } from '../../support/http/frameworks.ts';
import { expresses } from '../../support/http/native.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

describe.each(expresses)('A request that is answered while its guard waits (%s)', (_, express) => {
  it('[answered-meanwhile-01] A request that is answered while its guard waits keeps its whole response, and its handler never runs', async () => {
    const locks = createLocks();
    const answered = gate();
    const holder = runInTrace(
      async () => {
        await lock.acquire('key');
        await answered;
      },
      { locks },
    );
    let isHandled = false;
    const app = express();
    app.use(traceContext({ locks }));
    app.use((_req, res, next) => {
      next();
      void Promise.resolve().then(() => res.status(503).send('x'.repeat(5_000_000)));
    });
    app.get('/', lockOn('key'), () => {
      isHandled = true;
    });
    const server = createServer(app as RequestListener).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    expect([response.status, (await response.text()).length]).toEqual([503, 5_000_000]);
    answered.open();
    await holder;
    expect(isHandled).toBe(false);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await locks.close();
  });

  it('[answered-meanwhile-02] A request that is answered while its guard waits leaves the queue, even if work was given to waitUntil', async () => {
    const store = new MemoryStore();
    const locks = createLocks({ store });
    const work = gate();
    const app = express();
    app.use(traceContext({ locks }), lockOn('first'), (req, res, next) => {
      req.lock?.waitUntil(work);
      locks.on('waiting', () => res.end());
      next();
    });
    app.get('/', lockOn('key'));
    const aborted = new Promise((resolve) => locks.on('aborted', resolve));
    const server = createServer(app as RequestListener).listen(0, '127.0.0.1');
    await runInTrace(
      () =>
        lock.run('key', async () => {
          await once(server, 'listening');
          await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
          expect(await aborted).toMatchObject({ key: 'key' });
        }),
      { locks },
    );
    expect((await store.inspect('first')).holds).toHaveLength(1);
    work.open();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await locks.close();
  });
});

describeFrameworks('A request that a timer answers while its guard waits', (framework) => {
  it('[answered-meanwhile-03] A request to which a timer responds while its guard waits never runs its handler, and leaves the key free', async () => {
    const work = gate();
    const waiting: Call[] = [];
    const stage = await ServerStage.start(framework, (app, stage) => {
      app.route('/holder', framework.lockOn('k'), stage.handler('holder', work));
      const keep = framework.middleware((call, next) => {
        waiting.push(call);
        return next();
      });
      app.route('/late', keep, framework.lockOn('k'), stage.handler('late'));
    });
    const holder = stage.get('/holder', 'holder');
    await stage.until('holder in');
    const late = stage.get('/late', 'late');
    await stage.until('waiting late k');
    waiting[0]?.res.writeHead(503).end('timed out');
    expect((await late).status).toBe(503);
    work.open();
    await holder;
    await stage.free('k');
    expect(stage.journal).not.toContain('late in');
  });
});

describe('A peer without an address', () => {
  it('A peer without an address is trusted on a unix socket or within the process, and not once its connection was reset', () => {
    const isInside = (socket: object | undefined) => isTrusted({ headers: {} } as never, socket as never, 'internal');
    expect(isInside({ destroyed: false })).toBe(true);
    expect(isInside({ destroyed: false, localPort: 3000 })).toBe(false);
    expect(isInside({ destroyed: true })).toBe(false);
    expect(isInside(undefined)).toBe(false);
  });

  it('A peer can’t choose its owner by resetting its connection', async () => {
    const seen: boolean[] = [];
    const server = createServer((req, res) => {
      seen.push(req.socket.remoteAddress === undefined && isTrusted(req, req.socket, 'internal'));
      res.end();
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const gone = Array.from({ length: 5 }, () => {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1', () => {
        socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
        socket.resetAndDestroy();
      });
      return new Promise((resolve) => socket.once('close', resolve));
    });
    await Promise.all(gone);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    expect(seen).not.toContain(true);
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
      const app = express5();
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
