// What the package does on Node, it does on Bun and Deno. Each scene prints a line of what it saw.

import { AsyncLocalStorage } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { serve as serveHono } from '@hono/node-server';
import Router from '@koa/router';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import { stream } from 'hono/streaming';
import { Redis } from 'ioredis';
import Koa from 'koa';
import { createLocks, isLockError, lock, runInTrace } from 'reenlock';
import * as ofExpress from 'reenlock/express';
import * as ofFastify from 'reenlock/fastify';
import * as ofHono from 'reenlock/hono';
import * as ofKoa from 'reenlock/koa';
import * as ofNode from 'reenlock/node';
import { RedisStore } from 'reenlock/redis';

const client = new Redis(process.env.REDIS_URL);
client.on('error', (error) => console.log('redis', error.message));
const stores = [
  ['memory', undefined],
  ['redis', new RedisStore({ client })],
];

const runOutside = AsyncLocalStorage.snapshot();
for (const [name, store] of stores) {
  const locks = createLocks({ ...(store && { store }), trust: 'none' });
  const job = (routine) => runInTrace(routine, { locks, traceId: randomUUID() });
  await inJobs(name, job);
  for (const [framework, start] of Object.entries(servers())) await overHttp(`${name} ${framework}`, start, locks);
  await streams(name, locks);
  await job(() => waits(name, locks));
  await locks.close();
}
client.disconnect();

async function inJobs(name, job) {
  const order = [];
  let inside = 0;
  let most = 0;
  const visit = (n) => job(() => lock.run('order:42', () => pass(n)));
  const pass = async (n) => {
    inside += 1;
    most = Math.max(most, inside);
    await lock.run('order:42', () => new Promise(setImmediate));
    order.push(n);
    inside -= 1;
  };
  await Promise.all([1, 2, 3, 4, 5].map(visit));
  console.log(name, 'jobs', order.length, 'most inside', most);
  await job(async () => {
    const hold = await lock.acquire('order:43');
    console.log(name, 'try of another', await job(() => lock.tryAcquire('order:43')));
    const refused = await job(() => lock.acquire('order:43', { waitMs: 100 })).catch((error) => error);
    console.log(name, 'timeout', refused.code);
    await hold.release();
    console.log(name, 'released', hold.isHeld(), await job(async () => (await lock.tryAcquire('order:43')) !== null));
    await lock.runAll(['a', 'b'], () => console.log(name, 'batch'));
  });
}

async function overHttp(name, start, locks) {
  let units = 10;
  const take = () =>
    lock.run('order:42', async () => {
      const before = units;
      await new Promise(setImmediate);
      units = before - 1;
      return { units };
    });
  const { url, stop } = await start(locks, take);
  const replies = await Promise.all([1, 2, 3, 4, 5, 6].map(() => fetch(url, { method: 'POST' })));
  const bodies = await Promise.all(replies.map((reply) => reply.json()));
  const traces = new Set(replies.map(({ headers }) => headers.get('x-trace-id')));
  console.log(
    name,
    bodies
      .map((body) => body.units)
      .sort()
      .join(),
    traces.size,
    replies[0].status,
  );
  await stop();
}

/** A stream of Hono on the runtime's own server holds the lock until its end, or until its client disconnects. */
async function streams(name, locks) {
  const app = new Hono().use(ofHono.traceContext({ locks }));
  let finish;
  const isFinished = new Promise((resolve) => (finish = resolve));
  app.get('/:length', ofHono.lockOn('order:42'), (c) =>
    stream(c, async (out) => {
      await out.write('first');
      if (c.req.param('length') === 'endless') {
        while (!out.aborted) await out.write(await later('more'));
        return;
      }
      await isFinished;
      await out.write('last');
    }),
  );
  const { url, stop } = await serveFetch(app.fetch);
  const holders = async () => (await locks.inspect('order:42')).holds.length;
  const free = async () => {
    while ((await holders()) > 0) await later();
  };
  const client = new AbortController();
  const left = await fetch(new URL('endless', url), { signal: client.signal });
  await left.body.getReader().read();
  const before = await holders();
  client.abort();
  await free();
  console.log(name, 'stream', before, 'free when its client has left');

  const read = await fetch(new URL('short', url));
  const reader = read.body.getReader();
  await reader.read();
  const during = await holders();
  finish();
  while (!(await reader.read()).done);
  await free();
  console.log(name, 'stream', during, 'free at its end');
  await stop();
}

/** On the runtime's own server, a request leaves the queue when its client disconnects. Called in a job, which holds the lock. */
async function waits(name, locks) {
  const app = new Hono().use(ofHono.traceContext({ locks }));
  app.get('/', ofHono.lockOn('order:42'), (c) => c.text('in'));
  // Outside of the job: else each request would be a part of it.
  const { url, stop } = await runOutside(() => serveFetch(app.fetch));
  const waiters = async (count) => {
    while ((await locks.inspect('order:42')).waiters.length !== count) await later();
  };
  await lock.run('order:42', async () => {
    const client = new AbortController();
    const refused = fetch(url, { signal: client.signal }).catch((error) => error.name);
    await waiters(1);
    client.abort();
    await waiters(0);
    console.log(name, 'wait', await refused);
  });
  await stop();
}

function later(value) {
  return new Promise((resolve) => setTimeout(resolve, 10, value));
}

function servers() {
  return {
    node: async (locks, take) => {
      const [trace, guard] = [ofNode.traceContext({ locks }), ofNode.lockOn('order:42')];
      return listen(
        createServer((req, res) =>
          trace(req, res, () => guard(req, res, async () => res.end(JSON.stringify(await take())))),
        ),
      );
    },
    express: async (locks, take) => {
      const app = express().use(ofExpress.traceContext({ locks }));
      app.post('/', ofExpress.lockOn('order:42'), async (_, res) => res.json(await take()));
      return listen(createServer(app));
    },
    koa: async (locks, take) => {
      const router = new Router().post('/', ofKoa.lockOn('order:42'), async (ctx) => {
        ctx.body = await take();
      });
      const app = new Koa().use(ofKoa.traceContext({ locks })).use(router.routes());
      return listen(createServer(app.callback()));
    },
    fastify: async (locks, take) => {
      const app = fastify();
      app.register(ofFastify.traceContext({ locks }));
      app.post('/', { preHandler: ofFastify.lockOn('order:42') }, take);
      const url = await app.listen({ port: 0, host: '127.0.0.1' });
      return { url, stop: () => app.close() };
    },
    hono: async (locks, take) => {
      const app = new Hono().use(ofHono.traceContext({ locks }));
      app.post('/', ofHono.lockOn('order:42'), async (c) => c.json(await take()));
      const server = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false });
      await once(server, 'listening');
      return { url: urlOf(server), stop: () => new Promise((resolve) => server.close(resolve)) };
    },
    'hono by fetch': async (locks, take) => {
      const app = new Hono().use(ofHono.traceContext({ locks }));
      app.post('/', ofHono.lockOn('order:42'), async (c) => c.json(await take()));
      return serveFetch(app.fetch);
    },
    'fetch handler': async (locks, take) => {
      const app = new Hono().use(async (c, next) => {
        await runInTrace(
          async () => {
            await next();
          },
          { locks, request: c.req.raw },
        );
      });
      app.post('/', async (c) => c.json(await lock.run('order:42', take)));
      app.onError((error) => {
        if (isLockError(error)) return error.getResponse();
        throw error;
      });
      return serveFetch(app.fetch);
    },
  };
}

/** The runtime's own server; on Node that of Hono. */
async function serveFetch(handler) {
  if (globalThis.Bun) {
    const server = Bun.serve({ fetch: (request) => handler(request), port: 0, hostname: '127.0.0.1' });
    return { url: String(server.url), stop: () => server.stop() };
  }
  if (globalThis.Deno) {
    const server = Deno.serve({ port: 0, hostname: '127.0.0.1', onListen: () => {} }, (request) => handler(request));
    return { url: `http://127.0.0.1:${server.addr.port}`, stop: () => server.shutdown() };
  }
  const fetch = (request) => handler(request);
  const server = serveHono({ fetch, port: 0, hostname: '127.0.0.1', overrideGlobalObjects: false });
  await once(server, 'listening');
  return { url: urlOf(server), stop: () => new Promise((resolve) => server.close(resolve)) };
}

async function listen(server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: urlOf(server), stop: () => new Promise((resolve) => server.close(resolve)) };
}

function urlOf(server) {
  return `http://127.0.0.1:${server.address().port}`;
}
