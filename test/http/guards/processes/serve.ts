/**
 * Creates two `Locks` in memory, serves two requests under a guard, and prints how they were answered and what the process
 * was warned of, as JSON. With `cluster` as its argument a `node:cluster` worker does so, with `koa` it has Koa's middleware.
 */
import cluster from 'node:cluster';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLocks, type Locks } from '../../../../src/core/index.ts';
import * as express from '../../../../src/express/index.ts';
import * as koa from '../../../../src/koa/index.ts';

async function serve(): Promise<void> {
  const warnings: { code: string | undefined; message: string; detail: string | undefined }[] = [];
  process.on('warning', (warning) => {
    const { code, detail } = warning as { code?: string; detail?: string };
    if (code?.startsWith('LOCK_')) warnings.push({ code, message: warning.message, detail });
  });
  const all = [createLocks(), createLocks()];
  const listeners = all.map(process.argv[2] === 'koa' ? byKoa : byExpress);
  const server = createServer(listeners[0]);
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

function byExpress(locks: Locks): RequestListener {
  const trace = express.traceContext({ locks });
  const guard = express.lockOn('k');
  return (req, res) => {
    trace(req, res, () => guard(req, res, (error) => res.writeHead(error === undefined ? 200 : 500).end()));
  };
}

function byKoa(locks: Locks): RequestListener {
  const trace = koa.traceContext({ locks });
  const guard = koa.lockOn('k');
  return (req, res) => {
    const ctx = { req, res, request: { req }, state: {} } as never;
    void trace(ctx, () => guard(ctx, async () => res.writeHead(200).end())).catch(() => res.writeHead(500).end());
  };
}

if (process.argv[2] === 'cluster' && cluster.isPrimary) cluster.fork();
else void serve();
