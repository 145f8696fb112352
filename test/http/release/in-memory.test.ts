import { EventEmitter, once } from 'node:events';
import { id as rTracerId } from 'cls-rtracer';
import type { RequestHandler } from 'express';
import { createLocks, currentTrace, type Locks, lock, MemoryStore, runInTrace } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import supertest from 'supertest';
import { expresses } from '../../support/http/native.ts';
import { pathOf } from '../../support/path-of.ts';

describe.each(expresses)('%s, with locks in memory', (_, create) => {
  let store: MemoryStore;
  let locks: Locks;
  beforeEach(() => {
    store = new MemoryStore();
    locks = createLocks({ store });
  });
  afterEach(() => locks.close());

  const traced = () => create().use(traceContext({ locks, trust: 'none' }) as RequestHandler);
  const guard = lockOn('k') as unknown as RequestHandler;

  it('A handler whose request waited for its key runs in its own context, not in that of the release', async () => {
    const owners: unknown[] = [];
    const begun = new EventEmitter();
    const app = traced().get('/', guard, (req, res) => {
      owners.push([pathOf(req.lock), currentTrace()?.traceId, rTracerId()]);
      if (owners.length > 1) res.send();
      else begun.emit('first', res);
    });
    const server = app.listen(0);
    const first = once(begun, 'first');
    const answers = [supertest(server).get('/'), supertest(server).get('/')].map((answer) => answer.then((it) => it));
    const [response] = await first;
    while ((await store.inspect('k')).waiters.length === 0) await new Promise(setImmediate);
    response.send();
    const ids = (await Promise.all(answers)).map(({ headers }) => headers['x-trace-id']);
    expect(new Set(owners.map(String))).toEqual(new Set(ids.map((id) => [id, id, id].join())));
    server.close();
  });

  it('An acquire right after the response is refused, since the request has ended', async () => {
    await runInTrace(() => lock.run('warm', () => undefined), { locks });
    const told: unknown[] = [];
    const app = traced().get('/', async (_req, res) => {
      res.send();
      const outcomes = [lock.run('ran', () => 'ran'), lock.acquire('acquired'), lock.tryAcquire('tried')].map(
        (outcome) => Promise.resolve<unknown>(outcome).catch((error: { code: string }) => error.code),
      );
      told.push(...(await Promise.all(outcomes)));
    });
    await supertest(app).get('/').expect(200);
    while (told.length === 0) await new Promise(setImmediate);
    expect(told).toEqual(['ERR_LOCK_SCOPE', 'ERR_LOCK_SCOPE', 'ERR_LOCK_SCOPE']);
    for (const key of ['ran', 'acquired', 'tried']) expect((await store.inspect(key)).holds).toEqual([]);
  });
});
