import type { RequestListener } from 'node:http';
import express, { type Request, type RequestHandler, type Response } from 'express';
import Koa from 'koa';
import { getLock } from 'reenlock';
import * as forExpress from 'reenlock/express';
import * as forKoa from 'reenlock/koa';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { gate } from '../../support/gate.ts';
import { Contest, type Work } from '../../support/http/contest.ts';
import { express5 } from '../../support/http/express-app.ts';
import { koa3 } from '../../support/http/koa-app.ts';
import { ServerStage } from '../../support/http/server-stage.ts';

describe('An application of one framework within one of the other', () => {
  afterEach(ServerStage.endAll);

  /** Each has a `traceContext` and a guard on the same key. */
  function koaInExpress(
    handler: (ctx: Koa.Context, work: Work, stage: ServerStage) => Promise<void>,
  ): Promise<Contest> {
    return Contest.through(express5, (app, work, stage) => {
      const inner = new Koa();
      inner.use(forKoa.traceContext({ locks: stage.locks })).use(forKoa.lockOn('k'));
      inner.use((ctx) => handler(ctx, work, stage));
      app.use(express().use('/first', forExpress.lockOn('k'), inner.callback() as RequestListener));
    });
  }

  it('Koa in Express: both share one scope, which holds until the response and releases once', async () => {
    const contest = await koaInExpress(async (ctx, work) => {
      await work();
      ctx.body = `count ${getLock('k').holdCount()}`;
    });
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/count 2$/);
  });

  it('[mixed-01] Express in Koa: both share one scope, which holds until the response, not until the client has disconnected', async () => {
    const answer = gate();
    const contest = await Contest.through(koa3, (app, work, stage) => {
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
    await contest.expectStillHeld();
    contest.go();
    await contest.stage.until('first works on');
    await contest.first.hangUp('RST');
    await contest.expectStillHeld();
    answer.open();
    await contest.expectReleasedOnce();
  });

  it('[mixed-02] Express in Koa: if Express’s middleware never calls the `next` that Koa awaits, the lock is lost after maxHoldMs, though it has responded', async () => {
    const clock = new ManualClock();
    const answering: RequestHandler = (_, res) => void res.end('answered');
    const contest = await Contest.through(koa3, { locks: { clock, waitMs: Number.POSITIVE_INFINITY } }, (app, work) =>
      app.route('/first', koa3.lockOn('k'), async ({ req, res }) => {
        await work();
        // As koa-connect does.
        await new Promise((resolve) => answering(req as Request, res as Response, resolve));
      }),
    );
    contest.go();
    await contest.first.receives(/answered/);
    await contest.first.hangUp();
    await clock.advance(299_999);
    await contest.expectStillHeld();
    await clock.advance(1);
    await contest.second;
    contest.stage.expectOrder('lost first k', 'second in');
  });
});
