import type { RequestListener } from 'node:http';
import express from 'express';
import Koa from 'koa';
import { getLock } from 'reenlock';
import * as forExpress from 'reenlock/express';
import * as forKoa from 'reenlock/koa';
import { express5 } from '../../helpers/express-app.ts';
import { koa3 } from '../../helpers/koa-app.ts';
import { watchLeaks } from '../../helpers/leaks.ts';
import { gate, Stage } from '../../helpers/stage.ts';
import { Rivals, type Work } from './rivals.ts';

watchLeaks();

describe('an application of the one framework within one of the other', () => {
  afterEach(Stage.endAll);

  /** Each has a `traceContext` and a guard on the same key. */
  function koaInExpress(handler: (ctx: Koa.Context, work: Work, stage: Stage) => Promise<void>): Promise<Rivals> {
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

  it('Express in Koa: one scope, held until the answer, and not until the client has left', async () => {
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
});
