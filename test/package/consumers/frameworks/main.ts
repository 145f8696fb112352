// Valid as CommonJS and as ESM, which is `main.mts` then.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { getRequestListener } from '@hono/node-server';
import Router from '@koa/router';
import express from 'express';
import fastify from 'fastify';
import { Hono } from 'hono';
import Koa from 'koa';
import { createLocks, getLock, type Hold, type Locks, MemoryStore } from 'reenlock';
import * as forExpress from 'reenlock/express';
import * as forFastify from 'reenlock/fastify';
import * as forHono from 'reenlock/hono';
import * as forKoa from 'reenlock/koa';
import * as forNode from 'reenlock/node';

const events: string[] = [];

/** The first request stays until the second one is in the queue, or has wrongly come in. */
async function work(held: Hold | undefined): Promise<{ key: string }> {
  events.push('enter');
  const order = getLock('42');
  await order.run(async (hold) => {
    assert.equal(hold.fence, held?.fence);
    while (events.length === 1 && (await order.inspect()).waiters.length === 0) await turn();
  });
  events.push('leave');
  return { key: hold(held).key };
}

function hold(held: Hold | undefined): Hold {
  assert(held !== undefined);
  return held;
}

function onNode(locks: Locks): RequestListener {
  const trace = forNode.traceContext({ locks });
  const guard = forNode.lockOn((req) => req.url?.split('/')[2]);
  return (req, res) =>
    trace(req, res, () =>
      guard(req, res, async (error) => {
        assert.equal(error, undefined);
        res.end(JSON.stringify(await work(req.lock)));
      }),
    );
}

function onExpress(locks: Locks): RequestListener {
  const app = express().use(forExpress.traceContext({ locks }));
  return app.post(
    '/orders/:id',
    forExpress.lockOn((req) => req.params.id),
    async (req, res) => void res.json(await work(req.lock)),
  );
}

function onKoa(locks: Locks): RequestListener {
  const router = new Router();
  router.post(
    '/orders/:id',
    forKoa.lockOn((ctx) => ctx.params.id),
    async (ctx) => {
      ctx.body = await work(ctx.state.lock);
    },
  );
  return new Koa().use(forKoa.traceContext({ locks })).use(router.routes()).callback();
}

async function onFastify(locks: Locks): Promise<RequestListener> {
  const app = fastify();
  app.register(forFastify.traceContext({ locks }));
  const guard = forFastify.lockOn((request) => request.params.id);
  app.post<{ Params: { id: string } }>('/orders/:id', { preHandler: guard }, (request) => work(request.lock));
  await app.ready();
  return (req, res) => app.routing(req, res);
}

function onHono(locks: Locks): RequestListener {
  const app = new Hono();
  app.use(forHono.traceContext({ locks }));
  app.post(
    '/orders/:id',
    forHono.lockOn((c) => c.req.param('id')),
    async (c) => c.json(await work(c.var.lock)),
  );
  return getRequestListener(app.fetch);
}

async function main(): Promise<void> {
  for (const listen of [onNode, onExpress, onKoa, onFastify, onHono]) {
    events.length = 0;
    const locks = createLocks({ store: new MemoryStore() });
    const server = createServer(await listen(locks)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/orders/42`;
    const answers = await Promise.all([1, 2].map(async () => (await fetch(url, { method: 'POST' })).json()));
    await forNode.closeServer(server, locks);
    assert.deepEqual(events, ['enter', 'leave', 'enter', 'leave']);
    assert.deepEqual(answers, [{ key: '42' }, { key: '42' }]);
  }
  console.log('ok');
}

void main();
