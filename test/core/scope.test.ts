import {
  currentTrace,
  getLock,
  type Hold,
  LockScopeError,
  lock,
  runInTrace,
  traceHeaders,
} from '../../src/core/index.ts';
import { coreTests, outcomeOf } from './set-up.ts';

const setUp = coreTests();

describe('runInTrace', () => {
  it('answers what its routine does, in the trace it was given', async () => {
    const { locks } = setUp();
    const value = await runInTrace(
      async () => {
        await Promise.resolve();
        return currentTrace()?.traceId;
      },
      { locks, traceId: 'job-7' },
    );
    expect(value).toBe('job-7');
  });

  it('mints an id where there is none to inherit', async () => {
    const { locks } = setUp();
    const id = () => runInTrace(() => currentTrace()?.traceId, { locks });
    const [a, b] = [await id(), await id()];
    expect(a).toMatch(/^[0-9a-f]{32}$/);
    expect(b).not.toBe(a);
  });

  it('inherits trace and Locks from the surrounding scope, in a scope of its own', async () => {
    const { job } = setUp();
    await job('outer').in(async () => {
      const hold = await lock.acquire('key');
      const outer = currentTrace();
      await runInTrace(async () => {
        expect(currentTrace()).not.toBe(outer);
        expect(currentTrace()?.traceId).toBe('outer');
        const inner = await lock.acquire('key');
        expect(inner.fence).toBe(hold.fence);
      });
      expect(currentTrace()).toBe(outer);
      expect(hold.isHeld()).toBe(true);
    });
  });

  it('inherits no trace that is over, and none where one is named', async () => {
    const { job } = setUp();
    const outer = job('outer');
    expect(await outer.in(() => runInTrace(() => currentTrace()?.traceId, { traceId: 'own' }))).toBe('own');
    await outer.end();
    expect(await outer.in(() => runInTrace(() => currentTrace()?.traceId))).not.toBe('outer');
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('routine');
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('routine');
      },
    ],
  ])('rejects as its routine does, when it %s, and still gives back what was held', async (_, fail) => {
    const { locks, store, clock } = setUp();
    const failed = runInTrace(
      async () => {
        await lock.acquire('key');
        return fail();
      },
      { locks },
    );
    await expect(failed).rejects.toThrow('routine');
    await clock.settle();
    expect(await store.remains()).toEqual([]);
    await expect(runInTrace(fail, { locks })).rejects.toThrow('routine');
  });

  it('gives back what its routine left, newest first, and nothing twice', async () => {
    const { job, store, clock } = setUp();
    const own = job();
    const released = await own.in(() => lock.acquire('released'));
    for (const key of ['a', 'b', 'c']) await own.in(() => lock.acquire(key));
    await own.in(() => lock.acquire('b'));
    await released.release();
    const ids = store.calls.filter((call) => call.operation === 'acquire').map((call) => call.holdId);
    await own.end();
    await clock.settle();
    const gone = store.calls.filter((call) => call.operation === 'release').map((call) => call.holdId);
    // 'b' goes with the first acquire of it, since the store hears of the last release only.
    expect(gone).toEqual([ids[0], ids[3], ids[2], ids[1]]);
    expect(await store.remains()).toEqual([]);
  });

  it('ends its trace: the signal is aborted, and says what it is', async () => {
    const { job } = setUp();
    const own = job();
    const trace = own.in(() => currentTrace())!;
    const { signal } = trace;
    expect([signal.aborted, trace.isOver]).toEqual([false, false]);
    await own.end();
    expect([signal.aborted, trace.isOver]).toEqual([true, true]);
    expect(signal.reason).toMatchObject({ name: 'AbortError' });
  });

  it('that runs beside another has nothing to do with it', async () => {
    const { locks, clock } = setUp();
    const seen: string[] = [];
    const run = (traceId: string) =>
      runInTrace(
        async () => {
          const hold = await lock.acquire('key');
          seen.push(`${traceId} in`);
          await clock.settle();
          expect(hold.owner).toBe(currentTrace()?.traceId);
          seen.push(`${traceId} out`);
        },
        { locks, traceId },
      );
    await Promise.all([run('a'), run('b'), run('c')]);
    expect(seen).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out']);
  });
});

describe('outside a scope', () => {
  it('there is no trace, and nothing to put on an outgoing call', () => {
    expect(currentTrace()).toBeUndefined();
    expect(traceHeaders()).toEqual({});
  });

  it('acquire, try, run and release say what is missing; an owner is never invented', async () => {
    const { store } = setUp();
    const calls = [
      () => lock.acquire('key'),
      () => lock.tryAcquire('key'),
      () => lock.run('key', () => {}),
      () => lock.release('key'),
      () => getLock('key').acquire(),
      () => getLock('key').tryAcquire(),
      () => getLock('key').run(() => {}),
      () => getLock('key').release(),
    ];
    for (const call of calls) {
      await expect(call()).rejects.toThrow(LockScopeError);
      await expect(call()).rejects.toThrow(/`traceContext\(\)` is not mounted.*runInTrace/);
    }
    expect(store.calls).toEqual([]);
  });

  it('nothing is held', () => {
    expect([getLock('key').isHeld(), getLock('key').holdCount()]).toEqual([false, 0]);
  });
});

describe('in a scope that has ended', () => {
  it('nothing is acquired, and the message names the likely causes', async () => {
    const { job, store } = setUp();
    const own = job();
    await own.end();
    for (const call of [() => lock.acquire('key'), () => lock.tryAcquire('key'), () => lock.run('key', () => {})]) {
      const refused = own.in<Promise<unknown>>(call);
      await expect(refused).rejects.toThrow(LockScopeError);
      await expect(refused).rejects.toThrow(/not awaited.*waitUntil.*runInTrace/);
    }
    expect(store.calls).toEqual([]);
  });

  it('an acquire that was under way gives back what it got', async () => {
    const { job, store, clock } = setUp();
    const own = job();
    const open = store.gate('acquire');
    const outcome = outcomeOf(own.in(() => lock.acquire('key')));
    await clock.settle();
    await own.end();
    open();
    await clock.settle();
    expect(outcome.error).toBeInstanceOf(LockScopeError);
    expect(await store.remains()).toEqual([]);
  });
});

describe('branches of one scope', () => {
  it('share the owner, and are not isolated from each other', async () => {
    const { job } = setUp();
    const holds = await job('trace').in(() => Promise.all([1, 2, 3].map(() => lock.acquire('key'))));
    expect(new Set(holds.map((hold) => hold.fence)).size).toBe(1);
    expect(new Set(holds.map((hold) => hold.owner))).toEqual(new Set(['trace']));
  });

  it('that race for a free key all hold it, and it is free after all their releases', async () => {
    const { job, store } = setUp();
    const { in: inJob } = job();
    const holds = await inJob(() => Promise.all([lock.acquire('key'), lock.acquire('key')]));
    await holds[0].release();
    expect(holds[1].isHeld()).toBe(true);
    expect(await job().in(() => lock.tryAcquire('key'))).toBeNull();
    await holds[1].release();
    expect(await store.remains()).toEqual([]);
  });
});

describe('the async context', () => {
  it('follows timers, promises and callbacks, and a hold needs none', async () => {
    const { job } = setUp();
    let hold: Hold | undefined;
    const id = await job('trace').in(
      () =>
        new Promise((resolve) => {
          setImmediate(() =>
            process.nextTick(async () => {
              hold = await lock.acquire('key');
              resolve(currentTrace()?.traceId);
            }),
          );
        }),
    );
    expect(id).toBe('trace');
    expect(currentTrace()).toBeUndefined();
    await hold?.release();
    expect(hold?.isHeld()).toBe(false);
  });
});

describe('traceHeaders', () => {
  it('makes the callee work for this trace, under the header of its Locks', () => {
    expect(setUp().job('trace-1').in(traceHeaders)).toEqual({ 'X-Trace-Id': 'trace-1' });
    expect(setUp({ headerName: 'x-request-id' }).job('trace-2').in(traceHeaders)).toEqual({
      'x-request-id': 'trace-2',
    });
  });
});
