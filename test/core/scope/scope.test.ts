import {
  currentTrace,
  getLock,
  type Hold,
  LockNotHeldError,
  LockScopeError,
  lock,
  runInTrace,
  traceHeaders,
} from '../../../src/core/index.ts';
import { acquire } from '../../../src/core/lock/acquire.ts';
import { lockName } from '../../../src/core/model/key.ts';
import { runtimeOf } from '../../../src/core/runtime/locks.ts';
import { Scope } from '../../../src/core/scope/scope.ts';
import { gate } from '../../support/gate.ts';
import { pathOf } from '../../support/path-of.ts';
import { coreTests, type Job, outcomeOf, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

const scopeOf = (job: Job) => job.in(currentTrace) as Scope;

describe('runInTrace', () => {
  it('runInTrace mints an id if there is none to inherit', async () => {
    const { locks } = setUp();
    const id = () => runInTrace(() => currentTrace()?.traceId, { locks });
    const [a, b] = [await id(), await id()];
    expect(a).toMatch(/^[0-9a-f]{32}$/);
    expect(b).not.toBe(a);
  });

  it('runInTrace inherits no trace that has ended, and none if one is named', async () => {
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
  ])('runInTrace rejects as its routine does, when it %s, and still releases what was held', async (_, fail) => {
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

  it('runInTrace releases what its routine left, newest first, and nothing twice', async () => {
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

  it('runInTrace ends its trace: the signal is aborted, with the reason', async () => {
    const { job } = setUp();
    const own = job();
    const trace = own.in(() => currentTrace())!;
    const { signal } = trace;
    expect([signal.aborted, trace.hasEnded]).toEqual([false, false]);
    await own.end();
    expect([signal.aborted, trace.hasEnded]).toEqual([true, true]);
    expect(signal.reason).toMatchObject({ name: 'AbortError' });
  });

  it('runInTrace is independent of one that runs alongside it', async () => {
    const { locks, clock } = setUp();
    const seen: string[] = [];
    const run = (traceId: string) =>
      runInTrace(
        async () => {
          const hold = await lock.acquire('key');
          seen.push(`${traceId} in`);
          await clock.settle();
          expect(pathOf(hold)).toBe(currentTrace()?.traceId);
          seen.push(`${traceId} out`);
        },
        { locks, traceId },
      );
    await Promise.all([run('a'), run('b'), run('c')]);
    expect(seen).toEqual(['a in', 'a out', 'b in', 'b out', 'c in', 'c out']);
  });
});

describe('Code outside a scope', () => {
  it('Outside a scope, the errors of acquire, try, run and release name what is missing; an owner is never invented', async () => {
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

  it('Outside a scope, nothing is held', () => {
    expect([getLock('key').isHeld(), getLock('key').holdCount()]).toEqual([false, 0]);
  });
});

describe('A scope that has ended', () => {
  it('In a scope that has ended, nothing is acquired: the message names the likely causes, and the event reports it', async () => {
    const { job, store, events } = setUp();
    const aborted = events('aborted');
    const own = job('owner');
    await own.end();
    for (const call of [() => lock.acquire('key'), () => lock.tryAcquire('key'), () => lock.run('key', () => {})]) {
      const refused = own.in<Promise<unknown>>(call);
      await expect(refused).rejects.toThrow(LockScopeError);
      await expect(refused).rejects.toThrow(/not awaited.*waitUntil.*runInTrace/);
    }
    const refusal = { key: 'key', traceId: 'owner', holdId: expect.any(String), waitedMs: 0 };
    expect(aborted).toMatchObject([refusal, refusal, refusal]);
    expect(store.calls).toEqual([]);
  });

  it('An acquire that was under way when its scope ended releases what it got', async () => {
    const { job, store, clock } = setUp();
    const own = job();
    const open = store.gate('acquire');
    const outcome = await clock.settled(outcomeOf(own.in(() => lock.acquire('key'))));
    await own.end();
    open();
    await clock.settle();
    expect(outcome.error).toBeInstanceOf(LockScopeError);
    expect(await store.remains()).toEqual([]);
  });
});

describe('A scope that is abandoned', () => {
  it('An abandoned scope has lost what it holds, newest first, and each loss is reported once', async () => {
    const { job, clock, store, events } = setUp();
    const lost = events('lost');
    const own = job();
    const short = await own.in(() => lock.acquire('short', { leaseMs: 1_000, renew: false }));
    await own.in(() => lock.acquire('a'));
    await own.in(() => lock.acquire('b'));
    await clock.advance(1_000);
    scopeOf(own).abandon('it took too long');
    scopeOf(own).abandon('it took too long');
    await clock.settle();
    expect(lost.map(({ key }) => key)).toEqual(['short', 'b', 'a']);
    expect(short.signal.aborted).toBe(true);
    expect(await store.remains()).toEqual([]);
  });

  it('An abandoned scope also releases what was to be kept for other work, which settles later', async () => {
    const { job, clock, store, events } = setUp();
    const lost = events('lost');
    const own = job();
    const hold = await own.in(() => lock.acquire('key'));
    const work = gate();
    hold.waitUntil(work);
    scopeOf(own).end();
    scopeOf(own).abandon('it took too long');
    await clock.settle();
    expect(lost).toHaveLength(1);
    expect(await store.remains()).toEqual([]);
    scopeOf(own).end();
    expect(scopeOf(own).hasEnded).toBe(true);
    work.open();
    await clock.settle();
    expect(store.count('release')).toBe(1);
  });
});

it('A scope reports first what aborted it; its end alone is no departure of its client', async () => {
  const { job } = setUp();
  const [left, ended] = [scopeOf(job()), scopeOf(job())];
  left.abort('first');
  left.abort('second');
  left.end();
  expect([left.signal.reason, left.abortReason, left.isCancelled]).toEqual(['first', 'first', true]);
  ended.end();
  ended.abort('late');
  expect([ended.signal.aborted, ended.isCancelled]).toEqual([true, false]);
});

describe('A job that ends as it is granted what it asked for', () => {
  /** Whether what is told is held. An `await` takes one turn more, in which it may have ended: only `run` has none. */
  const kinds: readonly (readonly [string, () => Promise<boolean>, keys: number, late: number])[] = [
    ['acquire', async () => (await lock.acquire('a')).isHeld(), 1, 1],
    ['tryAcquire', async () => (await lock.tryAcquire('a'))?.isHeld() ?? true, 1, 1],
    ['acquireAll', async () => (await lock.acquireAll(['a', 'b'])).isHeld(), 2, 1],
    ['run', () => lock.run('a', (hold) => hold.isHeld()), 1, 0],
    ['runAll', () => lock.runAll(['a', 'b'], (hold) => hold.isHeld()), 2, 0],
  ];

  it.each(kinds)('%s reports no hold that was released', async (_, call, keys, late) => {
    const told: unknown[] = [];
    for (let turns = 0; turns < 20; turns++) {
      const setup = setUp();
      const own = setup.job();
      const granted = setup.events('granted');
      setup.locks.on('granted', () => {
        let left = turns;
        const endLater = (): void => {
          if (left === 0) scopeOf(own).end();
          else queueMicrotask(endLater);
          left -= 1;
        };
        if (granted.length === keys) endLater();
      });
      const outcome = await setup.clock.settled(outcomeOf(own.in(call)));
      told.push(outcome.state === 'fulfilled' ? outcome.value : (outcome.error as { code: string }).code);
      expect(await setup.store.remains()).toEqual([]);
    }
    expect(told[0]).toBe('ERR_LOCK_SCOPE');
    expect(told.at(-1)).toBe(true);
    expect(told.filter((one) => one === false).length).toBeLessThanOrEqual(late);
  });
});

it.each<readonly [string, () => Promise<unknown>]>([
  ['run', () => lock.run('a', () => 'done')],
  ['run, whose routine fails', () => lock.run('a', () => Promise.reject(new Error('routine')))],
  ['runAll', () => lock.runAll(['a', 'b'], () => 'done')],
  ['runAll, whose routine fails', () => lock.runAll(['a', 'b'], () => Promise.reject(new Error('routine')))],
])('The end of a job is not delayed by a %s that has ended', async (_, call) => {
  const own = setUp().job();
  await own.in(call).catch(() => {});
  scopeOf(own).end();
  expect(scopeOf(own).hasEnded).toBe(true);
});

describe('Waiters in a scope', () => {
  const name = lockName('key');

  it('A waiter for a handler gives up when the client disconnects; the handler itself waits on', async () => {
    const setup = setUp();
    await taken(setup);
    const scope = new Scope(runtimeOf(setup.locks), 'request', {});
    const guard = outcomeOf(Promise.resolve(acquire(scope.root, name, {}, 'guard')));
    const code = await setup.clock.settled(outcomeOf(Promise.resolve(acquire(scope.root, name, {}, 'code'))));
    scope.abort(new Error('gone'));
    await setup.clock.settle();
    expect(guard.error).toMatchObject({ code: 'ERR_LOCK_ABORTED', cause: new Error('gone') });
    expect(code.state).toBe('pending');
    scope.end();
    await setup.clock.settle();
    expect(code.error).toBeInstanceOf(LockScopeError);
  });

  it('A waiter for a handler gives up at the end of the work, though something is kept beyond it; other work waits on', async () => {
    const setup = setUp();
    const first = await taken(setup);
    const own = setup.job();
    const kept = await own.in(() => lock.acquire('kept'));
    const work = gate();
    kept.waitUntil(work);
    const scope = scopeOf(own);
    const guard = outcomeOf(Promise.resolve(acquire(scope.root, name, {}, 'guard')));
    const code = await setup.clock.settled(outcomeOf(Promise.resolve(acquire(scope.root, name, {}, 'code'))));
    scope.end();
    await setup.clock.settle();
    expect(guard.error).toBeInstanceOf(LockScopeError);
    expect(code.state).toBe('pending');
    await first.release();
    await setup.clock.settle();
    expect(code.value?.isHeld()).toBe(true);
    work.open();
    await setup.clock.settle();
    expect(code.value?.isHeld()).toBe(false);
  });

  it('A waiter leaves nothing in its scope once the wait has ended', async () => {
    const setup = setUp();
    const first = await taken(setup);
    const own = setup.job();
    const scope = scopeOf(own);
    const listening = new Set<() => void>();
    jest.spyOn(scope, 'listen').mockImplementation((listener) => void listening.add(listener));
    jest.spyOn(scope, 'unlisten').mockImplementation((listener) => void listening.delete(listener));
    const waiter = await setup.clock.settled(outcomeOf(own.in(() => lock.acquire('key'))));
    expect(listening.size).toBe(1);
    await first.release();
    await setup.clock.settle();
    expect([waiter.state, listening.size]).toEqual(['fulfilled', 0]);
    jest.restoreAllMocks();
    const listener = jest.fn();
    scope.listen(listener);
    scope.unlisten(listener);
    scope.end();
    expect(listener).not.toHaveBeenCalled();
  });

  it('A waiter gets an error if another branch released its hold in the same tick as the grant', async () => {
    const setup = setUp();
    const own = setup.job();
    setup.locks.on('granted', () => void scopeOf(own).holds.newestHold(name.id, scopeOf(own).root)?.release());
    const acquired = await setup.clock.settled(outcomeOf(own.in(() => lock.acquire('key'))));
    expect(acquired.error).toBeInstanceOf(LockNotHeldError);
  });
});

describe('The async context', () => {
  it('The async context follows timers, promises and callbacks, and a hold needs none', async () => {
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
  it('traceHeaders makes the callee work for this trace, under the header of its Locks', () => {
    expect(setUp().job('trace-1').in(traceHeaders)).toEqual({
      'X-Trace-Id': 'trace-1',
      'X-Trace-Branch': 'trace-1',
    });
    expect(setUp({ headerName: 'x-request-id' }).job('trace-2').in(traceHeaders)).toEqual({
      'x-request-id': 'trace-2',
      'X-Trace-Branch': 'trace-2',
    });
  });
});
