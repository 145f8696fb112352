import { once } from 'node:events';
import { Session } from 'node:inspector/promises';
import { dirname, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { openApp } from '../apps/index.mjs';
import { serve } from '../lib/serve.mjs';

const warmUpRequests = 20;
const untilReleasedMs = 200;

/** Tells by V8's coverage which functions of this package a request to a guarded route calls. */
await serve(async ({ ports }) => {
  const dist = dirname(dirname(fileURLToPath(import.meta.resolve('reenlock'))));
  const { app, close } = await openApp('reenlock guard', ports);
  const server = app.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  let lastId = 0;

  async function request() {
    lastId += 1;
    const url = `http://127.0.0.1:${server.address().port}/orders/${lastId}`;
    const response = await fetch(url, { method: 'POST' });
    if (!response.ok) throw new Error(`The application responded with ${response.status}`);
    await response.text();
  }

  /** The functions of this package that were called since the last look: `{ file, functions }` for each file. */
  async function called() {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    return result
      .filter(({ url }) => url.startsWith(pathToFileURL(dist).href))
      .map(({ url, functions }) => ({
        file: relative(dist, fileURLToPath(url)),
        functions: functions
          .filter(({ ranges: [whole] }) => whole.count > 0)
          .map(({ functionName }) => functionName || '(anonymous)'),
      }))
      .filter(({ functions }) => functions.length > 0);
  }

  return {
    async count() {
      for (let n = 0; n < warmUpRequests; n += 1) await request();
      await sleep(untilReleasedMs);
      await called();
      await request();
      await sleep(untilReleasedMs);
      return called();
    },
    async close() {
      session.disconnect();
      server.closeAllConnections();
      server.close();
      await close();
    },
  };
});
