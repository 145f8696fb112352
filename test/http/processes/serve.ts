/**
 * Creates two `Locks` in memory, serves two requests under a guard, and prints how they were answered and what the process
 * was warned of, as JSON. With `cluster` as its argument a `node:cluster` worker does so.
 */
import cluster from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLocks } from '../../../src/core/index.ts';
import { lockOn, traceContext } from '../../../src/express/index.ts';

async function serve(): Promise<void> {
  const warnings: { code: string | undefined; message: string; detail: string | undefined }[] = [];
  process.on('warning', (warning) => {
    const { code, detail } = warning as { code?: string; detail?: string };
    if (code?.startsWith('LOCK_')) warnings.push({ code, message: warning.message, detail });
  });
  const all = [createLocks(), createLocks()];
  const traces = all.map((locks) => traceContext({ locks }));
  const guard = lockOn('k');
  const server = createServer((req, res) => {
    traces[0]?.(req, res, () => guard(req, res, (error) => res.writeHead(error === undefined ? 200 : 500).end()));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const statuses: number[] = [];
  for (let n = 0; n < 2; n++) {
    const answer = await fetch(url);
    statuses.push(answer.status);
    await answer.text();
  }
  for (const locks of all) await locks.close();
  process.stdout.write(JSON.stringify({ statuses, warnings }), () => process.exit());
}

if (process.argv[2] === 'cluster' && cluster.isPrimary) cluster.fork();
else void serve();
