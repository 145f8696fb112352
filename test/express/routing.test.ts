import type { Response } from 'express';
import { getLock, lock } from 'reenlock';
import { lockOn } from 'reenlock/express';
import { Contest } from '../support/http/contest.ts';
import { describeExpress } from '../support/http/native.ts';

describeExpress('Guards on a router', (framework, express) => {
  it('A guard on a router is re-entered by a guard on a route, and released once', async () => {
    const contest = await Contest.through(framework, { path: '/first/orders/k' }, (app, work) => {
      const router = express.Router();
      router.use(lockOn('k'));
      router.get(
        '/orders/:id',
        lockOn((req) => req.params.id),
        async (_req, res) => {
          await work();
          res.send(`count ${getLock('k').holdCount()}`);
        },
      );
      app.use(express.Router().use('/first', router));
    });
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/count 2$/);
  });

  it('A param handler that acquires holds from there on; the guard re-enters', async () => {
    const contest = await Contest.through(framework, { path: '/first/k' }, (app, work, stage) => {
      const router = express.Router();
      router.param('id', async (_req, _res, next, id: string) => {
        await lock.acquire(id);
        await work();
        next();
      });
      router.get(
        '/first/:id',
        lockOn((req) => req.params.id),
        (_req, res) => {
          stage.note(`handler has ${getLock('k').holdCount()}`);
          res.send('first');
        },
      );
      app.use(router);
    });
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/first$/);
    contest.stage.expectOrder('first in', 'handler has 2', 'released first k', 'second in');
  });

  it.each(['route', 'router'] as const)(
    "a handler that calls next('%s') holds on, until what comes then has responded",
    async (to) => {
      const contest = await Contest.through(framework, (app, work, stage) => {
        const router = express.Router();
        router.get(
          '/first',
          lockOn('k'),
          (_req, _res, next) => next(to),
          () => stage.note('passed over'),
        );
        const last = async (_req: unknown, res: Response): Promise<void> => {
          await work();
          res.send(`count ${getLock('k').holdCount()}`);
        };
        if (to === 'route') router.get('/first', lockOn('k'), last);
        else router.get('/first', () => stage.note('passed over'));
        app.use(router);
        if (to === 'router') app.use(express.Router().get('/first', lockOn('k'), last));
      });
      await contest.expectHeldUntilGo();
      await contest.expectAnswer(/count 2$/);
      expect(contest.stage.journal).not.toContain('passed over');
    },
  );
});
