import { once } from 'node:events';
import { createServer as createHttp2 } from 'node:http2';
import type { Duplex } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { createLocks, LockConfigError, lock, runInTrace } from 'reenlock';
import { closeServer } from 'reenlock/express';
import { closeServer as closeServerOfKoa } from 'reenlock/koa';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { type Gate, gate } from '../../support/gate.ts';
import { bare } from '../../support/http/bare-app.ts';
import { describeFrameworks, type Framework, type GuardOptions } from '../../support/http/frameworks.ts';
import { RawClient } from '../../support/http/raw-client.ts';
import { ServerStage, type ServerStageOptions } from '../../support/http/server-stage.ts';

/** A server with a guarded route whose handler works until the gate is opened, and one that needs no lock. */
async function begin(
  framework: Framework,
  options?: ServerStageOptions,
  guard?: GuardOptions,
): Promise<{ stage: ServerStage; work: Gate }> {
  const work = gate();
  const stage = await ServerStage.start(framework, options, (app, stage) => {
    app.route('/order', framework.lockOn('k', guard), async (call) => {
      stage.note('in');
      call.lock?.signal.addEventListener('abort', () => stage.note('told'));
      await work;
      call.send(call.lock?.isHeld() ? 'done' : 'lost', call.lock?.isHeld() ? 200 : 503);
    });
    app.route('/health', (call) => call.send('well'));
  });
  return { stage, work };
}

/** One that holds and one that waits, each on a connection that it means to keep. */
async function contest(stage: ServerStage): Promise<[holder: RawClient, waiter: RawClient]> {
  const holder = (await stage.connect()).request({ path: '/order', trace: 'first' });
  await stage.until('in');
  const waiter = (await stage.connect()).request({ path: '/order', trace: 'second' });
  await stage.until('waiting second k');
  return [holder, waiter];
}

/** A server whose guarded route has sent one half of its response, with a head that keeps the connection: nothing can be said any more. */
function exporting(work: Promise<void>): Promise<ServerStage> {
  return ServerStage.start(bare, (app, stage) => {
    app.route('/order', bare.lockOn('k'), async (call) => {
      call.res.write('first half, ');
      stage.note('in');
      await work;
      call.res.end('second half');
    });
    app.route('/health', (call) => {
      call.res.writeHead(200).end('well');
      stage.note('well');
    });
  });
}

/** A server and a client whose request without a lock is at work. */
async function reporting(work: Promise<void>, options?: ServerStageOptions) {
  const stage = await ServerStage.start(bare, options, (app, stage) =>
    app.route('/report', async (call) => {
      stage.note('in');
      await work;
      call.send('report');
    }),
  );
  const client = (await stage.connect()).request({ path: '/report' });
  await stage.until('in');
  return { stage, client };
}

/** Notes in the journal when it is over. */
function close(stage: ServerStage, drainMs?: number): Promise<void> {
  return closeServer(stage.server, stage.locks, { drainMs }).then(() => stage.note('closed'));
}

describeFrameworks('closeServer', (framework) => {
  it.each([
    ['', {}],
    [', by `sendProblem`', { handler: 'problem' } as const],
  ])(
    'closeServer responds to waiters with 503%s, lets holders respond with 200, and ends the connections',
    async (_, guard) => {
      const { stage, work } = await begin(framework, {}, guard);
      const [holder, waiter] = await contest(stage);
      const { port } = stage;
      const isClosed = close(stage);
      await waiter.closed;
      expect(waiter.received).toMatch(/^HTTP\/1.1 503 [\s\S]*^Retry-After: 1\r$[\s\S]*^Connection: close\r$/im);
      await expect(RawClient.connect(port)).rejects.toThrow('ECONNREFUSED');
      expect([stage.count('closed'), stage.count('told')]).toEqual([0, 0]);
      work.open();
      await Promise.all([holder.closed, isClosed]);
      expect(holder.received).toMatch(/^HTTP\/1.1 200 [\s\S]*^Connection: close\r$[\s\S]*done$/im);
      stage.expectOrder('in', 'released first k', 'closed');
    },
  );

  it('closeServer lets a holder finish work that it does in parallel under its lock', async () => {
    const first = gate();
    const stage = await ServerStage.start(framework, {}, (app, stage) =>
      app.route('/order', framework.lockOn('k'), async (call) => {
        const items = ['a', 'b'].map((item) => lock.run('k', () => first.then(() => item)));
        stage.note('in');
        call.send((await Promise.all(items)).join(' and '));
      }),
    );
    const client = (await stage.connect()).request({ path: '/order' });
    await stage.until('in');
    const isClosed = close(stage);
    first.open();
    await Promise.all([client.closed, isClosed]);
    expect(client.received).toMatch(/^HTTP\/1.1 200 [\s\S]*a and b$/);
  });

  it('closeServer leaves another module’s `destroy` on a connection alone', async () => {
    const { stage, work } = await begin(framework);
    const destroyed = gate();
    stage.server.once('request', ({ socket }) => {
      const destroy = socket.destroy.bind(socket);
      socket.destroy = (error?: Error) => {
        stage.note('destroyed by its own');
        destroyed.open();
        return destroy(error);
      };
    });
    const client = (await stage.connect()).request({ path: '/order', trace: 'first' });
    await stage.until('in');
    const isClosed = close(stage);
    work.open();
    await Promise.all([client.closed, isClosed, destroyed]);
    expect(client.received).toMatch(/done$/);
  });
});

/** Bytes: more than what lies on the way to a client that does not read. */
const large = 32 * 2 ** 20;

describe('closeServer', () => {
  afterEach(ServerStage.endAll);

  it('closeServer is the same function for both frameworks', () => {
    expect(closeServerOfKoa).toBe(closeServer);
  });

  it('closeServer ends an idle connection at once, and a busy one as soon as it is idle', async () => {
    const work = gate();
    const stage = await exporting(work);
    const busy = (await stage.connect()).request({ path: '/order' });
    const idle = (await stage.connect()).request({ path: '/health' });
    await Promise.all([stage.until('in'), idle.receives(/well\r\n0\r\n\r\n$/)]);
    const isClosed = close(stage, 60_000);
    // It is no time that ends them.
    stage.server.keepAliveTimeout = 60_000;
    await idle.closed;
    expect([stage.count('closed'), busy.socket.destroyed]).toEqual([0, false]);
    work.open();
    await Promise.all([busy.closed, isClosed]);
    expect(busy.received).toMatch(/^Connection: keep-alive\r$[\s\S]*second half/m);
  });

  it.each([
    ['before', true],
    ['meanwhile', false],
  ])(
    'closeServer lets a response that was given %s be sent whole, however slowly its client reads',
    async (_, isBefore) => {
      const work = gate();
      const stage = await ServerStage.start(bare, (app, stage) =>
        app.route('/order', bare.lockOn('k'), async (call) => {
          stage.note('in');
          await work;
          call.send(Buffer.alloc(large, 'x'));
        }),
      );
      const client = (await stage.connect())
        .pause()
        .request({ path: '/order', trace: 'first', headers: ['Connection: close'] });
      await stage.until('in');
      if (isBefore) {
        work.open();
        await stage.until('released first k');
      }
      const isClosed = close(stage);
      work.open();
      await stage.until('released first k');
      // All that is done at once is done by then.
      await turn();
      client.socket.resume();
      await Promise.all([client.closed, isClosed]);
      expect(client.received.length).toBeGreaterThan(large);
    },
  );

  it('closeServer responds to a request that arrives on a holder’s connection, and then ends it, whatever writes its head', async () => {
    const work = gate();
    const stage = await exporting(work);
    const client = (await stage.connect()).request({ path: '/order', trace: 'first' });
    await stage.until('in');
    const isClosed = close(stage);
    client.request({ path: '/health', trace: 'second' });
    await stage.until('well');
    work.open();
    await Promise.all([client.closed, isClosed]);
    const [first, second] = client.received.split('second half');
    expect([first, second]).toEqual([expect.stringMatching(/^Connection: keep-alive/m), expect.stringMatching(/well/)]);
    expect(second).toMatch(/^Connection: close/m);
  });

  it('closeServer takes the lock from a holder after drainMs: the holder gets the signal, and has a second for its response', async () => {
    const clock = new ManualClock();
    const { stage, work } = await begin(bare, { clock });
    const [holder] = await contest(stage);
    const isClosed = close(stage, 4_000);
    await clock.advance(3_999);
    expect(stage.count('told')).toBe(0);
    await clock.advance(1);
    await stage.until('lost first k');
    expect(stage.count('told')).toBe(1);
    await stage.free('k');
    work.open();
    await Promise.all([holder.closed, isClosed]);
    expect(holder.received).toMatch(/^HTTP\/1.1 503 [\s\S]*lost$/);
  });

  it('closeServer cuts off a request that has not responded a second after drainMs', async () => {
    const clock = new ManualClock();
    const { stage, work } = await begin(bare, { clock });
    const [holder, waiter] = await contest(stage);
    const isClosed = close(stage, 4_000);
    await waiter.closed;
    await clock.advance(4_999);
    expect([stage.count('closed'), holder.socket.destroyed]).toEqual([0, false]);
    await clock.advance(1);
    await Promise.all([holder.closed, isClosed]);
    expect(holder.received).toBe('');
    work.open();
  });

  it('closeServer lets requests without a lock finish, too', async () => {
    const work = gate();
    const { stage, client } = await reporting(work);
    const isClosed = close(stage);
    // The locks are closed by now, and it is the server that is waited for.
    await stage.locks.close();
    expect(stage.count('closed')).toBe(0);
    work.open();
    await Promise.all([client.closed, isClosed]);
    expect(client.received).toMatch(/^HTTP\/1.1 200 [\s\S]*report$/);
  });

  it('closeServer waits for requests without a lock as long as for holders, even if no lock is held any more', async () => {
    const clock = new ManualClock();
    const work = gate();
    const { stage, client } = await reporting(work, { clock });
    const isClosed = close(stage, 4_000);
    await stage.locks.close();
    await clock.advance(4_999);
    expect([stage.count('closed'), client.socket.destroyed]).toEqual([0, false]);
    await clock.advance(1);
    await Promise.all([client.closed, isClosed]);
    expect(client.received).toBe('');
    work.open();
  });

  it('closeServer no longer waits for a connection that the application has taken over', async () => {
    const clock = new ManualClock();
    const { stage } = await begin(bare, { clock });
    stage.server.on('upgrade', (_, socket: Duplex) => {
      socket.on('error', () => {}).on('end', () => socket.end());
      socket.resume().write('HTTP/1.1 101 Switching Protocols\r\n\r\n');
    });
    const client = (await stage.connect()).request({ path: '/', headers: ['Connection: Upgrade', 'Upgrade: chat'] });
    await client.receives(/101/);
    const isClosed = close(stage, 4_000);
    await clock.advance(5_000);
    await isClosed;
    expect(client.socket.destroyed).toBe(false);
    const over = once(stage.server, 'close');
    client.destroy();
    await over;
  });

  it.each([
    ['at most a second, if the server would keep it for longer', 0, 1_000],
    ['as long as the server does, if that is shorter', 5, 5],
  ])('closeServer keeps a connection whose request has no scope for %s', async (_, keepAliveTimeout, expected) => {
    const { stage } = await begin(bare);
    stage.server.keepAliveTimeout = keepAliveTimeout;
    const isClosed = close(stage);
    expect(stage.server.keepAliveTimeout).toBe(expected);
    await isClosed;
  });

  it('closeServer may be called again, also on a server that no longer listens, and installs no signal handler', async () => {
    const signals = () => (['SIGTERM', 'SIGINT'] as const).map((signal) => process.listenerCount(signal));
    const before = signals();
    const { stage, work } = await begin(bare);
    const [holder] = await contest(stage);
    const both = [close(stage), close(stage)];
    expect(signals()).toEqual(before);
    work.open();
    await Promise.all([holder.closed, ...both]);
    await close(stage);
    expect(stage.count('closed')).toBe(3);
  });

  it('closeServer refuses a wrong server, Locks or option, and has closed nothing then', async () => {
    const { stage } = await begin(bare);
    const { server, locks } = stage;
    const calls = [
      [undefined, locks],
      [createHttp2(), locks],
      [server, { close() {} }],
      [server, locks, { drainMs: -1 }],
      [server, locks, { graceMs: 1 }],
    ] as Parameters<typeof closeServer>[];
    for (const args of calls) await expect(closeServer(...args)).rejects.toThrow(LockConfigError);
    expect(server.listening).toBe(true);
    await runInTrace(() => lock.run('k', () => {}), { locks });
  });

  it('closeServer drains for its Locks’ drainMs by default', async () => {
    const locks = createLocks({ drainMs: 0 });
    const { stage, work } = await begin(bare);
    const hold = await runInTrace(
      async () => {
        const own = await lock.acquire('k');
        void closeServer(stage.server, locks);
        await once(own.signal, 'abort');
        return own;
      },
      { locks },
    );
    expect(hold.isHeld()).toBe(false);
    work.open();
  });
});
