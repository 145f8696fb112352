import { createHook } from 'node:async_hooks';
import { createLocks, currentTrace, type Locks, type LocksOptions, lock, MemoryStore, runInTrace } from 'reenlock';
import { pathOf } from '../../support/path-of.ts';

/** Whose work it would be taken for. */
const owner = () => pathOf(currentTrace());

describe('What one request has started for all', () => {
  const opened: Locks[] = [];
  afterEach(async () => {
    for (const locks of opened.splice(0)) await locks.close({ drainMs: 0 });
  });

  function create(options: LocksOptions): Locks {
    const locks = createLocks(options);
    opened.push(locks);
    return locks;
  }

  it('Each listener of a hold’s signal runs in its own scope, not in the first listener’s', async () => {
    const locks = create({ leaseMs: 1_500 });
    const tried = runInTrace(
      async () => {
        await lock.acquire('first');
        return runInTrace(
          async () => {
            const { signal } = await lock.acquire('second', { leaseMs: 700, maxHoldMs: 700 });
            return new Promise((resolve) => {
              signal.addEventListener('abort', () => {
                resolve(lock.tryAcquire('first').then((hold) => [owner(), pathOf(hold ?? undefined)]));
              });
            });
          },
          { traceId: 'second' },
        );
      },
      { locks, traceId: 'first' },
    );
    expect(await tried).toEqual(['second', undefined]);
  });

  it('A listener runs in the scope of the hold or trace, even if another scope subscribed first and has ended', async () => {
    const aborted = (signal: AbortSignal | undefined) =>
      new Promise((resolve) => signal?.addEventListener('abort', () => resolve(owner())));
    const job = await runInTrace(
      async () => {
        const trace = currentTrace();
        const hold = await lock.acquire('key', { leaseMs: 500, maxHoldMs: 500 });
        const batch = await lock.acquireAll(['key', 'free']);
        await runInTrace(() => [trace?.signal, hold.signal, batch.signal], { traceId: 'other' });
        const over = aborted(trace?.signal);
        return { over, lost: await Promise.all([aborted(hold.signal), aborted(batch.signal)]) };
      },
      { locks: create({}), traceId: 'own' },
    );
    expect([...job.lost, await job.over]).toEqual(['own', 'own', 'own']);
  });

  it('`jest --detectOpenHandles` finds nothing open', async () => {
    const open: string[] = [];
    const hook = createHook({
      init(_id, type, _trigger, resource) {
        const { hasRef } = resource as { hasRef?: () => boolean };
        if (hasRef === undefined || hasRef.call(resource)) open.push(type);
      },
    });
    hook.enable();
    await jest.isolateModulesAsync(async () => void (await import('../../../src/core/base/clock.ts')));
    hook.disable();
    expect(open).not.toContain('reenlock');
  });

  it('Listeners of a job’s signal run as the job’s work, whatever stops it', async () => {
    const stop = new AbortController();
    const job = runInTrace(
      () => new Promise((resolve) => currentTrace()?.signal.addEventListener('abort', () => resolve(owner()))),
      { locks: create({}), traceId: 'job', signal: stop.signal },
    );
    await runInTrace(async () => stop.abort(), { locks: create({}), traceId: 'stopping' });
    expect(await job).toBe('job');
  });

  it('Renewals are no work of a trace', async () => {
    const locks = create({ leaseMs: 900 });
    await runInTrace(
      async () => {
        const renewed = new Promise((resolve) => void locks.on('renewed', () => resolve(owner())));
        await lock.acquire('key');
        expect(await renewed).toBeUndefined();
      },
      { locks },
    );
  });

  it('Polls are no work of a trace', async () => {
    const store = new MemoryStore();
    const acquire = jest.spyOn(store, 'acquire');
    const locks = create({ store, pollMs: 100 });
    await runInTrace(
      async () => {
        await lock.acquire('key');
        const owners: unknown[] = [];
        const polled = new Promise<void>((resolve) => {
          acquire.mockImplementation((request, terms) => {
            owners.push(owner());
            if (owners.length === 3) resolve();
            return MemoryStore.prototype.acquire.call(store, request, terms);
          });
        });
        const waiting = runInTrace(() => lock.acquire('key', { waitMs: 2_000 }), { locks, traceId: 'waiter' });
        await polled;
        expect(owners).toEqual(['waiter', undefined, undefined]);
        await lock.release('key');
        await waiting;
      },
      { locks, traceId: 'holder' },
    );
  });

  it('The connection for messages is no work of a trace', async () => {
    const store = new MemoryStore();
    const owners: unknown[] = [];
    jest.spyOn(store, 'subscribe').mockImplementation(async (...args) => {
      await null;
      owners.push(owner());
      return MemoryStore.prototype.subscribe.apply(store, args);
    });
    await runInTrace(() => lock.run('key', () => {}), { locks: create({ store }) });
    expect(owners).toEqual([undefined]);
  });

  it('A call that timed out is no work of a trace', async () => {
    const store = new MemoryStore();
    jest.spyOn(store, 'acquire').mockImplementation(() => new Promise(() => undefined));
    const locks = create({ store, storeTimeoutMs: 100 });
    const owners: unknown[] = [];
    locks.on('storeError', ({ operation }) => void (operation === 'acquire' && owners.push(owner())));
    const tries = ['first', 'second'].map((traceId) =>
      runInTrace(() => lock.tryAcquire(traceId), { locks, traceId }).catch(({ code }) => code),
    );
    expect(await Promise.all(tries)).toEqual(['ERR_LOCK_STORE', 'ERR_LOCK_STORE']);
    expect(owners).toEqual([undefined, undefined]);
  });
});
