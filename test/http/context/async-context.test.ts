import { EventEmitter } from 'node:events';
import { id as rtracerId, runWithId } from 'cls-rtracer';
import { currentTrace, LockKeyError, lock, runInTrace } from 'reenlock';
import request from 'supertest';
import { gate } from '../../support/gate.ts';
import { describeFrameworks } from '../../support/http/frameworks.ts';
import { ServerStage } from '../../support/http/server-stage.ts';
import { pathOf } from '../../support/path-of.ts';

/** What a handler finds itself in: our trace, cls-rtracer's id, and the owner of a lock that it takes. */
async function whoAmI(): Promise<{ trace: string | undefined; rtracer: unknown; owner: string }> {
  return { trace: currentTrace()?.traceId, rtracer: rtracerId(), owner: await lock.run('own', (hold) => pathOf(hold)) };
}

const all = (id: string): object => ({ trace: id, rtracer: id, owner: id });

describeFrameworks('The request’s own context', (framework) => {
  const { lockOn } = framework;

  it('The request’s context is there in timers, promises, event emitters, and the request’s own events', async () => {
    const stage = await ServerStage.start(framework, (app) =>
      app.route('/x', lockOn('k'), async (call) => {
        const emitter = new EventEmitter();
        const inEmitter = new Promise((resolve) => emitter.once('go', () => resolve(whoAmI())));
        const inTimer = new Promise((resolve) => setTimeout(() => resolve(whoAmI()), 1));
        const inTick = new Promise((resolve) => process.nextTick(() => resolve(whoAmI())));
        const inRequest = new Promise((resolve) => call.req.on('end', () => resolve(whoAmI())).resume());
        emitter.emit('go');
        call.send(await Promise.all([inEmitter, inTimer, inTick, inRequest, whoAmI()]));
      }),
    );
    const { body } = await request(stage.server).post('/x').set('X-Trace-Id', 'mine').send({ id: '42' });
    expect(body).toEqual(Array.from({ length: 5 }, () => all('mine')));
  });

  it('A handler whose request waited for its key runs in its own context, not in that of the release', async () => {
    const work = gate();
    const stage = await ServerStage.start(framework, (app, stage) =>
      app
        .route('/first', lockOn('k'), stage.handler('first', work))
        .route('/second', lockOn('k'), async (call) => call.send({ ...(await whoAmI()), hold: pathOf(call.lock) })),
    );
    const first = stage.get('/first', 'first');
    await stage.until('first in');
    const second = stage.get('/second', 'second');
    await stage.until('waiting second k');
    work.open();
    expect((await second).body).toEqual({ ...all('second'), hold: 'second' });
    await first;
  });

  it('A guard restores the request’s context for its skip, its key function and its handler', async () => {
    const seen: string[] = [];
    const note = (what: string): void => void seen.push(`${what} ${currentTrace()?.traceId}`);
    const pool = framework.middleware((_, next) => runInTrace(next, { traceId: 'other' }));
    const stage = await ServerStage.start(framework, (app) =>
      app.route(
        '/x',
        pool,
        lockOn(
          () => {
            note('key');
            throw new LockKeyError('none');
          },
          {
            skip: () => {
              note('skip');
              return false;
            },
            handler: (_, call) => {
              note('handler');
              call.send('refused', 400);
            },
          },
        ),
        (call) => call.send('in'),
      ),
    );
    expect((await stage.get('/x', 'mine')).status).toBe(400);
    expect(seen).toEqual(['skip mine', 'key mine', 'handler mine']);
  });

  it.each(['above', 'below'])(
    'cls-rtracer’s own middleware, mounted %s, has the same id: that of traceContext',
    async (place) => {
      const stage = await ServerStage.start(framework, { bare: true }, (app, stage) => {
        const ours = framework.traceContext({ locks: stage.locks });
        app.use(...(place === 'above' ? [framework.rtracer(), ours] : [ours]));
        app.route('/x', lockOn('k'), async (call) => call.send({ ...(await whoAmI()), hold: pathOf(call.lock) }));
      });
      const { body, headers } = await stage.get('/x', 'mine');
      expect(body).toEqual({ ...all('mine'), hold: 'mine' });
      expect(headers['x-trace-id']).toBe('mine');
    },
  );

  it('A request’s context is not the one in which the server began to listen', async () => {
    const stage = await runWithId(
      () =>
        ServerStage.start(framework, (app) => app.route('/x', lockOn('k'), async (call) => call.send(await whoAmI()))),
      'of-the-process',
    );
    expect((await stage.get('/x', 'mine')).body).toEqual(all('mine'));
  });
});
