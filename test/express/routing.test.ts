import type { Response } from 'express';
import { getLock, lock, runInTrace } from 'reenlock';
import { lockOn } from 'reenlock/express';
import { gate } from '../support/gate.ts';
import { Contest } from '../support/http/contest.ts';
import { describeExpress } from '../support/http/native.ts';
import { ServerStage } from '../support/http/server-stage.ts';
import { watchLeaks } from '../support/processes/leaks.ts';

watchLeaks();

describeExpress('Guards on a router', (framework, express) => {
  afterEach(ServerStage.endAll);

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

  it('Two guards with different keys hold both until the response, and one waits while it holds the other', async () => {
    const [work, answer] = [gate(), gate()];
    const stage = await ServerStage.start(framework, (app, stage) => {
      app.route('/b', lockOn('b'), stage.handler('b', work));
      app.route('/ab', lockOn('a'), lockOn('b'), async (call) => {
        stage.note('ab in');
        await answer;
        call.send([...(call.locks ?? [])].map(([key, hold]) => `${key} ${hold.isHeld()}`));
      });
      app.route('/a', lockOn('a'), (call) => call.send('a'));
    });
    const [b, ab] = [stage.get('/b', 'first'), stage.until('b in').then(() => stage.get('/ab', 'second'))];
    await stage.until('waiting second b');
    const a = stage.get('/a', 'third');
    await stage.until('waiting third a');
    expect([await stage.holder('a'), await stage.holder('b')]).toEqual(['second', 'first']);
    work.open();
    await stage.until('ab in');
    await stage.get('/nowhere');
    expect([await stage.holder('a'), await stage.holder('b')]).toEqual(['second', 'second']);
    expect(await stage.waiters('a')).toEqual(['third']);
    answer.open();
    expect((await ab).body).toEqual(['a true', 'b true']);
    expect([(await b).text, (await a).text]).toEqual(['b', 'a']);
    stage.expectOrder('released first b', 'ab in', 'released second b', 'released second a');
  });

  it('If the second of two guards refuses, the first one’s lock is held until the refusal was sent', async () => {
    const freed = gate();
    let taker: Promise<void> | undefined;
    const contest = await Contest.through(framework, (app, work, stage) => {
      taker = runInTrace(() => lock.run('taken', () => freed), { traceId: 'taker', locks: stage.locks });
      const taken = framework.middleware(async (_, next) => {
        await stage.until('granted taker taken');
        next();
      });
      app
        .onError((error, call) => void work().then(() => call.send(error.code, error.status)))
        .route('/first', taken, lockOn('k'), lockOn('taken', { waitMs: 1 }), () => stage.note('handler in'));
    });
    await contest.expectHeldUntilGo();
    await contest.expectAnswer(/^HTTP\/1.1 423 [\s\S]*ERR_LOCK_TIMEOUT$/);
    expect(contest.stage.journal).not.toContain('handler in');
    freed.open();
    await taker;
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

  it('A param handler whose acquire is refused responds with the refusal, and no handler runs', async () => {
    const contest = await Contest.through(framework, (app, work, stage) => {
      const router = express.Router();
      router.param('id', (_req, _res, next, id: string) => {
        lock.acquire(id, { waitMs: 0 }).then(() => next(), next);
      });
      router.get('/refused/:id', (_req, _res) => stage.note('refused in'));
      app.use(router).route('/first', lockOn('k'), async (call) => {
        await work();
        call.send('first');
      });
    });
    const { status, headers } = await contest.stage.get('/refused/k', 'third');
    expect(status).toBe(423);
    expect(headers['x-trace-id']).toBe('third');
    await contest.expectHeld();
    contest.go();
    await contest.expectReleasedOnce();
    expect(contest.stage.journal).not.toContain('refused in');
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
