import { once } from 'node:events';
import { createServer, IncomingMessage, type Server } from 'node:http';
import { type AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { stream } from 'hono/streaming';
import { timeout } from 'hono/timeout';
import { createLocks, getLock, type Locks, lock, MemoryStore } from 'reenlock';
import { closeServer, lockOn, sendProblem, traceContext } from 'reenlock/hono';
import { gate } from '../support/gate.ts';
import { until } from '../support/until.ts';

let locks: Locks;
let store: MemoryStore;
let app: Hono;
let server: Server;

async function url(): Promise<string> {
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
const isHeld = async (): Promise<boolean> => (await store.inspect('k')).holds.length > 0;

describe('Hono', () => {
  beforeEach(() => {
    store = new MemoryStore();
    locks = createLocks({ store });
    app = new Hono();
    app.use(traceContext({ locks }));
    server = createServer(getRequestListener((...args) => app.fetch(...args), { overrideGlobalObjects: false }));
  });
  afterEach(() => closeServer(server, locks, { drainMs: 0 }));

  it('The default error handler responds to lock errors of guards and of handlers with their status and headers', async () => {
    app.get(
      '/guard',
      lockOn(() => ''),
      (c) => c.text('in'),
    );
    app.get('/handler', lockOn('k'), async (c) => {
      await getLock('k', { reentrant: false }).tryAcquire();
      await lock.acquire('');
      return c.text('in');
    });
    for (const path of ['/guard', '/handler']) {
      const response = await fetch((await url()) + path);
      expect([response.status, response.headers.get('content-type')]).toEqual([400, 'application/problem+json']);
      expect(await response.json()).toMatchObject({ code: 'ERR_LOCK_KEY' });
    }
  });

  it('sendProblem as `onError` throws other errors again', () => {
    const error = new Error('own trouble');
    const context = { env: { outgoing: { headersSent: false } } };
    expect(() => Reflect.apply(sendProblem, undefined, [error, context])).toThrow(error);
  });

  it('The handshake of a WebSocket, which has no response of Node, has its trace and its locks, and a guard refuses it', async () => {
    const errors: Error[] = [];
    app.onError((error, c) => {
      errors.push(error);
      return c.text('failed', 500);
    });
    app.get('/socket', async (c) => {
      await lock.acquire('k');
      return c.text(String(await isHeld()));
    });
    app.get('/guarded', lockOn('k'), (c) => c.text('in'));
    // As @hono/node-server and @hono/node-ws call the application.
    const handshake = async (path: string) =>
      app.request(path, {}, { incoming: new IncomingMessage(new Socket()), outgoing: undefined });
    const response = await handshake('/socket');
    expect([await response.text(), response.headers.get('x-trace-id')]).toEqual(['true', expect.any(String)]);
    expect(await isHeld()).toBe(false);
    expect((await handshake('/guarded')).status).toBe(500);
    expect(errors.map(({ message }) => message)).toEqual([
      expect.stringContaining('for a WebSocket, lock in `runInTrace`'),
    ]);
  });

  it('A stream holds the lock until its last byte while its client reads', async () => {
    const end = gate();
    app.get('/', lockOn('k'), (c) =>
      stream(c, async (out) => {
        await out.write('first');
        await end;
        await out.write('second');
      }),
    );
    const response = await fetch(await url());
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    expect(await isHeld()).toBe(true);
    end.open();
    while (!(await reader.read()).done);
    await until(isHeld, (held) => !held);
  });

  it('A stream whose client has disconnected releases the lock before its callback ends, unless the callback keeps it', async () => {
    const client = new AbortController();
    const end = gate();
    const seen: unknown[] = [];
    for (const [path, keeps] of [
      ['/plain', false],
      ['/keeps', true],
    ] as const) {
      app.get(path, lockOn('k'), (c) =>
        stream(c, async (out) => {
          const work = async (): Promise<void> => {
            await out.write('first');
            await end;
          };
          await (keeps ? getLock('k').run(work) : work());
          seen.push(path);
        }),
      );
    }
    const read = async (path: string): Promise<void> => {
      const response = await fetch((await url()) + path, { signal: client.signal });
      await (response.body as ReadableStream<Uint8Array>).getReader().read();
    };
    const left = new Promise((resolve) => server.once('connection', (socket) => socket.once('close', resolve)));
    await read('/plain');
    client.abort();
    await left;
    await until(isHeld, (held) => !held);
    expect(seen).toEqual([]);

    const other = new AbortController();
    const response = await fetch(`${await url()}/keeps`, { signal: other.signal });
    await (response.body as ReadableStream<Uint8Array>).getReader().read();
    const gone = new Promise((resolve) => locks.on('released', resolve));
    other.abort();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await isHeld()).toBe(true);
    end.open();
    await gone;
    await until(isHeld, (held) => !held);
    expect(seen).toEqual(['/plain', '/keeps']);
  });

  it('[hono-timeout-01] A timeout that is mounted above the guard leaves the lock with the handler until it has settled', async () => {
    const work = gate();
    app.use(timeout(300));
    app.get('/', lockOn('k'), async (c) => {
      await work;
      return c.text('in');
    });
    expect((await fetch(await url())).status).toBe(504);
    expect(await isHeld()).toBe(true);
    work.open();
    await until(async () => !(await isHeld()));
  });
});
