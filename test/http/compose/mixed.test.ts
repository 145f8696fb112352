import type { RequestListener } from 'node:http';
import express, { type Request, type RequestHandler, type Response } from 'express';
import Koa from 'koa';
import { getLock } from 'reenlock';
import * as forExpress from 'reenlock/express';
import * as forKoa from 'reenlock/koa';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { express5 } from '../../support/http/express-app.ts';
import { koa3 } from '../../support/http/koa-app.ts';
import { Rivals, type Work } from '../../support/http/rivals.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

describe('an application of the one framework within one of the other', () => {
  afterEach(ServerStage.endAll);

  /** Each has a `traceContext` and a guard on the same key. */
  function koaInExpress(handler: (ctx: Koa.Context, work: Work, stage: ServerStage) => Promise<void>): Promise<Rivals> {
    return Rivals.start(express5, (app, work, stage) => {
      const inner = new Koa();
      inner.use(forKoa.traceContext({ locks: stage.locks })).use(forKoa.lockOn('k'));
      inner.use((ctx) => handler(ctx, work, stage));
      app.use(express().use('/first', forExpress.lockOn('k'), inner.callback() as RequestListener));
    });
  }

  it('Koa in Express: one scope, held until the answer, and given back once', async () => {
    const rivals = await koaInExpress(async (ctx, work) => {
      await work();
      ctx.body = `count ${getLock('k').holdCount()}`;
    });
    await rivals.expectStillHeld();
    rivals.go();
    await rivals.expectHandedOn();
    await rivals.expectAnswer(/count 2$/);
  });

  it('Koa in Express: a failure is answered by Koa, and the lock is given back with that', async () => {
    const rivals = await koaInExpress(async (ctx, work) => {
      await work();
      ctx.throw(409, 'trouble');
    });
    await rivals.expectStillHeld();
    rivals.go();
    await rivals.expectHandedOn();
    await rivals.expectAnswer(/^HTTP\/1.1 409 [\s\S]*trouble$/);
  });

  it('[mixed-01] Express in Koa: one scope, held until the answer, and not until the client has left', async () => {
    const answer = gate();
    const rivals = await Rivals.start(koa3, (app, work, stage) => {
      const inner = express();
      inner.get('/first', forExpress.traceContext({ locks: stage.locks }), forExpress.lockOn('k'), async (_, res) => {
        await work();
        stage.note('first works on');
        await answer;
        res.send(`count ${getLock('k').holdCount()}`);
      });
      app.route('/first', koa3.lockOn('k'), (call) => {
        call.detach();
        inner(call.req, call.res);
      });
    });
    await rivals.expectStillHeld();
    rivals.go();
    await rivals.stage.until('first works on');
    await rivals.first.hangUp('RST');
    await rivals.expectStillHeld();
    answer.open();
    await rivals.expectHandedOn();
  });

  it('[mixed-02] Koa waits for a `next` that Express’s middleware never calls: the lock is lost after maxHoldMs, though it has answered', async () => {
    const clock = new ManualClock();
    const answering: RequestHandler = (_, res) => void res.end('answered');
    const rivals = await Rivals.start(
      koa3,
      (app, work) =>
        app.route('/first', koa3.lockOn('k'), async ({ req, res }) => {
          await work();
          // As koa-connect does.
          await new Promise((resolve) => answering(req as Request, res as Response, resolve));
        }),
      { locks: { clock, waitMs: Number.POSITIVE_INFINITY } },
    );
    rivals.go();
    await rivals.first.receives(/answered/);
    await rivals.first.hangUp();
    await clock.advance(299_999);
    await rivals.expectStillHeld();
    await clock.advance(1);
    await rivals.second;
    rivals.stage.expectOrder('lost first k', 'second in');
  });
});
