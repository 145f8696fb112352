import type { Response } from 'express';
import { lockOn, traceContext } from 'reenlock/express';
import { Contest, type Work } from '../support/http/contest.ts';
import { describeExpress, type Express } from '../support/http/native.ts';
import type { ServerStage } from '../support/http/server-stage.ts';

describeExpress('An application within an application', (framework, express) => {
  /** Where `traceContext` stands, and where the guards of the key do. */
  interface Arrangement {
    readonly trace: { readonly outer: boolean; readonly inner: boolean };
    readonly guard: { readonly outer: boolean; readonly inner: boolean };
  }

  const arrangements: [string, Arrangement][] = [
    ['below traceContext, guards', { trace: { outer: true, inner: false }, guard: { outer: false, inner: true } }],
    [
      'with a traceContext of its own, guards',
      { trace: { outer: false, inner: true }, guard: { outer: false, inner: true } },
    ],
    [
      'below a guard and with its own traceContext, guards again',
      { trace: { outer: true, inner: true }, guard: { outer: true, inner: true } },
    ],
  ];

  it.each(arrangements)('%s: held until its response, given back once', async (_, arrangement) => {
    const contest = await start(arrangement, (inner, work) =>
      inner.get('/', async (_req, res) => {
        await work();
        res.send('first');
      }),
    );
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/first$/);
  });

  it.each(arrangements)('%s and hands off to a route outside: held until that responds', async (_, arrangement) => {
    const contest = await start(arrangement, (inner, _work, stage) =>
      inner.get('/', (_req, _res, next) => {
        stage.note('inner goes on');
        next();
      }),
    );
    contest.stage.expectOrder('inner goes on', 'first in');
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/outer, of first$/);
  });

  it('with a traceContext of its own opens the scope of a guard outside that comes after it', async () => {
    const contest = await Contest.through(framework, { locks: { bare: true } }, (app, work, { locks }) => {
      app.use(express().use('/first', traceContext({ locks })));
      app.route('/first', lockOn('k'), async (call) => {
        await work();
        call.send('first');
      });
    });
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/first$/);
  });

  it.each(arrangements)('%s and fails: held until the outer error middleware has responded', async (_, arrangement) => {
    const contest = await start(arrangement, (inner, work) => {
      inner.get('/', (_req, _res, next) => {
        void work().then(() => next(new Error('trouble')));
      });
      inner.use((error: Error, _req: unknown, _res: unknown, next: (error: Error) => void) => next(error));
    });
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/outer handled trouble$/);
  });

  function start(
    { trace, guard }: Arrangement,
    build: (inner: ReturnType<Express>, work: Work, stage: ServerStage) => void,
  ): Promise<Contest> {
    return Contest.through(framework, { locks: { bare: true } }, (app, work, stage) => {
      const { locks } = stage;
      const outer = express();
      const inner = express();
      if (trace.outer) outer.use(traceContext({ locks }));
      if (guard.outer) outer.use('/first', lockOn('k'));
      if (trace.inner) inner.use(traceContext({ locks }));
      if (guard.inner) inner.use(lockOn('k'));
      build(inner, work, stage);
      outer.use('/first', inner);
      outer.use('/first', (_req, res) => {
        void work().then(() => res.send(`outer, of ${res.getHeader('X-Trace-Id')}`));
      });
      outer.use('/first', (error: Error, _req: unknown, res: Response, _next: unknown) => {
        res.status(500).send(`outer handled ${error.message}`);
      });
      app.use(outer);
    });
  }
});
