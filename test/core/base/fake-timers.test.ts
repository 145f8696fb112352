import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { createLocks, getLock, type Locks, MemoryStore, runInTrace } from 'reenlock';
import { lockOn, traceContext } from 'reenlock/express';

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

  it('Under fake timers, a guard’s lock is released with the response', async () => {
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

/** One `Locks` for all tests of a file: some of them used fake timers, and some of those let much time pass. */
describe.each([0, 3_600_000])('After fake timers that were advanced by %i ms', (passedMs) => {
  let store: MemoryStore;
  let locks: Locks;

  beforeEach(async () => {
    store = new MemoryStore();
    locks = createLocks({ store, storeTimeoutMs: 200 });
    locks.on('lost', () => undefined); // Otherwise there is a warning.
    jest.useFakeTimers();
    await jest.advanceTimersByTimeAsync(passedMs);
    // Of a request that the test left behind. What it starts is due in the time that ends here.
    void runInTrace(() => getLock('order:40').run(() => new Promise(() => undefined), { leaseMs: 100 }), { locks });
    await jest.advanceTimersByTimeAsync(0);
    jest.useRealTimers();
  });
  afterEach(() => locks.close({ drainMs: 0 }));

  it('A hold that is taken after fake timers is renewed', async () => {
    const renewed = new Promise((resolve) => locks.on('renewed', ({ key }) => key === 'order:42' && resolve(key)));
    const routine = () => getLock('order:42').run(() => renewed, { leaseMs: 300 });
    expect(await runInTrace(routine, { locks })).toBe('order:42');
  });

  it('A hold that is acquired after fake timers learns of its loss', async () => {
    const routine = () =>
      getLock('order:42').run(({ signal }) => new Promise((resolve) => (signal.onabort = resolve)), {
        leaseMs: 200,
        renew: false,
      });
    await expect(runInTrace(routine, { locks })).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
  });

  it('A call after fake timers has its deadline', async () => {
    jest.spyOn(store, 'acquire').mockReturnValue(new Promise(() => undefined));
    const acquire = () => getLock('order:42').acquire();
    await expect(runInTrace(acquire, { locks })).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
  });

  it('A waiter that began under fake timers gives up in real time, once the `Locks` is used again', async () => {
    const acquire = () => runInTrace(() => getLock('order:42').acquire({ waitMs: 300 }), { locks, traceId: 'waiter' });
    await runInTrace(
      async () => {
        await getLock('order:42').acquire();
        jest.useFakeTimers();
        const refused = acquire();
        await jest.advanceTimersByTimeAsync(0);
        jest.useRealTimers();
        expect(await getLock('order:43').isLocked()).toBe(false);
        await expect(refused).rejects.toMatchObject({ code: 'ERR_LOCK_TIMEOUT' });
      },
      { locks },
    );
  });

  it('A hold is renewed under fake timers whose timers were cleared', async () => {
    const renewed: string[] = [];
    locks.on('renewed', ({ key }) => key === 'order:40' || void renewed.push(key));
    jest.useFakeTimers();
    await runInTrace(
      async () => {
        await getLock('order:42').acquire({ leaseMs: 60_000 });
        jest.clearAllTimers();
        await jest.advanceTimersByTimeAsync(30_000);
        await getLock('order:43').acquire({ leaseMs: 60_000 });
        await jest.advanceTimersByTimeAsync(20_000);
        expect(new Set(renewed)).toEqual(new Set(['order:42', 'order:43']));
      },
      { locks },
    );
    jest.useRealTimers();
  });
});
