import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { nowUs } from '../lib/clock.mjs';
import { loadReenlock } from '../lib/open-reenlock.mjs';
import { serve } from '../lib/serve.mjs';
import { freePort } from '../servers/supervise.mjs';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');
const everyMs = 10;
const lookEveryMs = 250;
const warmUpMs = 2_000;

/** A Redis server of its own, which it kills and starts again while an application asks for locks all the time. */
await serve(async ({ library, retryMs }) => {
  const { createLocks, lock, runInTrace } = await loadReenlock('.');
  const { RedisStore } = await loadReenlock('redis');
  const port = await freePort();
  let server;
  process.once('exit', () => server?.kill('SIGKILL'));

  async function start() {
    const options = ['--port', port, '--bind', '127.0.0.1', '--save', '', '--dir', tmpdir()];
    server = spawn(process.env.REDIS_SERVER || 'redis-server', options.map(String), { stdio: 'ignore' });
    while (!(await replies(port))) await sleep(2);
  }

  async function connectClient() {
    const client = await connectors[library](port, retryMs);
    client.on('error', () => {}); // Each call reports it, too.
    await client.ping();
    return client;
  }

  /** One outage. Times are counted from the moment when the server replies again. */
  async function play({ outageMs, perSecond }) {
    await start();
    const client = await connectClient();
    const locks = createLocks({ store: new RedisStore({ client }) });
    const seen = { pending: 0, refused: 0, firstGrantUs: undefined, backUs: Number.POSITIVE_INFINITY };
    let lastId = 0;
    const acquire = async () => {
      const fromUs = nowUs();
      lastId += 1;
      seen.pending += 1;
      try {
        const hold = await lock.acquire(`order:${lastId}`);
        if (fromUs >= seen.backUs) seen.firstGrantUs ??= nowUs();
        await hold.release();
      } catch (error) {
        if (error.code !== 'ERR_LOCK_STORE') throw error;
        seen.refused += 1;
      } finally {
        seen.pending -= 1;
      }
    };
    const requests = setInterval(() => {
      for (let n = 0; n < (perSecond * everyMs) / 1_000; n += 1) void runInTrace(acquire, { locks });
    }, everyMs);
    await sleep(warmUpMs);

    collectGarbage();
    const heapBefore = process.memoryUsage().heapUsed;
    server.kill('SIGKILL');
    await once(server, 'exit');
    let queued;
    for (let ms = 0; ms < outageMs; ms += lookEveryMs) {
      await sleep(lookEveryMs);
      if (client.offlineQueue) queued = Math.max(queued ?? 0, client.offlineQueue.length);
    }
    const { refused } = seen;
    collectGarbage();
    const heapKb = (process.memoryUsage().heapUsed - heapBefore) / 1_000;
    const clientIsReady = new Promise((resolve) => client.once('ready', () => resolve(nowUs())));
    await start();
    seen.backUs = nowUs();
    const clientUs = Math.max(0, (await clientIsReady) - seen.backUs);
    while (seen.firstGrantUs === undefined) await sleep(1);
    clearInterval(requests);
    while (seen.pending > 0) await sleep(1);

    await locks.close();
    client.disconnect();
    server.kill('SIGKILL');
    await once(server, 'exit');
    const grantMs = (seen.firstGrantUs - seen.backUs) / 1_000;
    return { wallMs: outageMs, refused, queued, heapKb, grantMs, clientMs: clientUs / 1_000 };
  }

  return { play, close: () => undefined };
});

const connectors = {
  // As BullMQ needs it: what an application sends in an outage stays in the client.
  ioredis(port, retryMs) {
    const retry = retryMs === undefined ? {} : { retryStrategy: () => retryMs };
    return new Redis(port, '127.0.0.1', { maxRetriesPerRequest: null, ...retry });
  },
  async 'node-redis'(port) {
    return createClient({ socket: { host: '127.0.0.1', port } }).connect();
  },
};

async function replies(port) {
  const socket = createConnection(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    socket.write('PING\r\n');
    await once(socket, 'data');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
