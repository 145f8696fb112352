import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { createLocks, getLock, type Locks, MemoryStore, runInTrace } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';
import { watchLeaks } from '../../support/processes/leaks.ts';

watchLeaks();

/** As an application's tests may call it: of the ways to go on later, none is real. */
describe('Fake timers', () => {
  let store: MemoryStore;
  let locks: Locks;
  beforeEach(() => {
    store = new MemoryStore();
    locks = createLocks({ store });
    jest.useFakeTimers();
  });
  afterEach(async () => {
    jest.useRealTimers();
    await locks.close();
  });

  it('Under fake timers, a lock is handed over', async () => {
    const turn = () => runInTrace(() => getLock('order:42').run(() => Promise.resolve('done')), { locks });
    expect(await Promise.all([turn(), turn(), turn()])).toEqual(['done', 'done', 'done']);
  });

  it('Under fake timers that are advanced synchronously, an acquire times out, and is released once', async () => {
    const release = jest.spyOn(store, 'release');
    await runInTrace(
      async () => {
        await getLock('order:42').acquire();
        const refused = runInTrace(() => getLock('order:42').acquire(), { locks, traceId: 'waiter' });
        const error = refused.catch(({ code }: { code: string }) => code);
        await jest.advanceTimersByTimeAsync(0);
        jest.advanceTimersByTime(60_000);
        expect(await error).toBe('ERR_LOCK_TIMEOUT');
        await jest.advanceTimersByTimeAsync(10_000);
        expect(release.mock.calls.filter(([{ owner }]) => owner === 'waiter')).toHaveLength(1);
      },
      { locks },
    );
  });

  it('Under fake timers, a guard’s lock is released with the answer', async () => {
    const app = express();
    app.use(traceContext({ locks }), lockOn('order:42'), (_, res) => res.end());
    const server = createServer(app).listen(0);
    const { port } = server.address() as AddressInfo;
    const status = () =>
      new Promise((resolve) => get({ port, agent: false }, (res) => resolve(res.resume().statusCode)));
    expect([await status(), await status()]).toEqual([200, 200]);
    server.close();
  });
});
