import { LockConfigError, LockLostError, LocksClosedError, lock, runInTrace } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, outcomeOf } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('close', () => {
  it('close waits for what is held, and no longer', async () => {
    const { job, locks, clock, store } = setUp();
    const hold = await job().in(() => lock.acquire('key'));
    const closed = outcomeOf(locks.close());
    await clock.advance(9_999);
    expect([closed.state, hold.isHeld()]).toEqual(['pending', true]);
    await hold.release();
    await clock.settle();
    expect(closed.state).toBe('fulfilled');
    expect(await store.remains()).toEqual([]);
    expect(clock.timerCount).toBe(0);
  });

  it('close keeps what is held renewed while it drains', async () => {
    const { job, locks, clock } = setUp();
    const hold = await job().in(() => lock.acquire('key', { leaseMs: 1_000 }));
    const closed = outcomeOf(locks.close());
    await clock.advance(8_000);
    expect(hold.isHeld()).toBe(true);
    await hold.release();
    await closed.settled;
  });

  it('close does not wait for what was lost before', async () => {
    const { job, locks, clock } = setUp();
    await job().in(() => lock.acquire('key', { leaseMs: 1_000, renew: false }));
    await clock.advance(1_000);
    const closed = await clock.settled(outcomeOf(locks.close()));
    expect(closed.state).toBe('fulfilled');
  });

  it('close waits for what is held alongside what was lost and released before', async () => {
    const { job, locks, clock } = setUp();
    const own = job();
    const lost = await own.in(() => lock.acquire('lost', { leaseMs: 1_000, renew: false }));
    const hold = await own.in(() => lock.acquire('key'));
    await clock.advance(1_000);
    await lost.release();
    const closed = await clock.settled(outcomeOf(locks.close()));
    expect([closed.state, hold.isHeld()]).toEqual(['pending', true]);
    await hold.release();
    await clock.settle();
    expect(closed.state).toBe('fulfilled');
  });

  it('close refuses new acquires', async () => {
    const { job, locks, clock, store } = setUp();
    const own = job();
    const hold = await own.in(() => lock.acquire('key'));
    const closed = outcomeOf(locks.close());
    const calls = store.calls.length;
    for (const call of [() => lock.acquire('other'), () => lock.tryAcquire('other'), () => lock.run('o', () => {})]) {
      await expect(own.in<Promise<unknown>>(call)).rejects.toThrow(LocksClosedError);
      await expect(job().in<Promise<unknown>>(call)).rejects.toThrow(LocksClosedError);
    }
    expect(store.calls).toHaveLength(calls);
    await hold.release();
    await clock.settle();
    expect(closed.state).toBe('fulfilled');
  });

  it('close cancels waiters, and acquires on their way to the queue', async () => {
    const { job, locks, clock, store } = setUp();
    const hold = await job().in(() => lock.acquire('key'));
    const waiter = await clock.settled(outcomeOf(job().in(() => lock.acquire('key'))));
    const open = store.gate('acquire');
    const coming = await clock.settled(outcomeOf(job().in(() => lock.acquire('free'))));
    const closed = outcomeOf(locks.close());
    open();
    await clock.settle();
    expect(waiter.error).toBeInstanceOf(LocksClosedError);
    expect(coming.error).toBeInstanceOf(LocksClosedError);
    expect((await store.inspect('key')).waiters).toEqual([]);
    expect((await store.inspect('free')).holds).toEqual([]);
    await hold.release();
    await closed.settled;
  });

  it('close lets all branches of a holder re-enter, one after the other, also those that wait already', async () => {
    const { job, locks, clock } = setUp();
    const own = job();
    const hold = await own.in(() => lock.acquire('key'));
    const first = gate();
    const order: string[] = [];
    const branch = (name: string, until?: Promise<void>) =>
      outcomeOf(own.in(() => lock.run('key', () => until).then(() => order.push(name))));
    const before = [branch('before 1', first), branch('before 2')];
    await clock.settle();
    const closed = outcomeOf(locks.close());
    const after = [branch('after 1'), branch('after 2')];
    first.open();
    await clock.settle();
    expect([...before, ...after].map(({ state }) => state)).toEqual(Array(4).fill('fulfilled'));
    expect(order).toEqual(['before 1', 'before 2', 'after 1', 'after 2']);
    await hold.release();
    await clock.settle();
    expect(closed.state).toBe('fulfilled');
  });

  it('close lets the jobs of a holder re-enter, one after the other, also one that waits in the queue', async () => {
    const { job, locks, clock } = setUp();
    const own = job();
    const hold = await own.in(() => lock.acquire('key'));
    const first = gate();
    const nested = (until?: Promise<void>) =>
      outcomeOf(own.in(() => runInTrace(() => lock.run('key', () => until), { locks })));
    const before = [nested(first), nested()];
    await clock.settle();
    const closed = outcomeOf(locks.close());
    const after = nested();
    const other = outcomeOf(own.in(() => runInTrace(() => lock.run('other', () => {}), { locks })));
    first.open();
    await clock.settle();
    expect([...before, after].map(({ state }) => state)).toEqual(Array(3).fill('fulfilled'));
    expect(other.error).toBeInstanceOf(LocksClosedError);
    await hold.release();
    await clock.settle();
    expect(closed.state).toBe('fulfilled');
  });

  it('close lets a reader become the writer', async () => {
    const { job, locks, clock } = setUp();
    const own = job();
    const reader = await own.in(() => lock.acquire('key', { mode: 'read' }));
    const closed = outcomeOf(locks.close());
    const writer = await clock.settled(outcomeOf(own.in(() => lock.run('key', () => 'written'))));
    expect(writer.value).toBe('written');
    await reader.release();
    await clock.settle();
    expect(closed.state).toBe('fulfilled');
  });

  it('close refuses what its holder may not re-enter', async () => {
    const { job, locks, clock } = setUp();
    const own = job();
    const hold = await own.in(() => lock.acquire('key'));
    const free = outcomeOf(own.in(() => lock.whenFree('key')));
    await clock.settle();
    const closed = outcomeOf(locks.close());
    const late = outcomeOf(own.in(() => lock.acquire('key', { reentrant: false })));
    await clock.settle();
    expect([free.error, late.error]).toEqual([expect.any(LocksClosedError), expect.any(LocksClosedError)]);
    await hold.release();
    await closed.settled;
  });

  it('close refuses the branches and jobs of a holder that still wait after drainMs', async () => {
    const { job, locks, clock, store } = setUp();
    const own = job();
    await own.in(() => lock.acquire('key'));
    const forever = gate();
    const run = () => lock.run('key', () => forever);
    const branches = [outcomeOf(own.in(run)), outcomeOf(own.in(run))];
    const jobs = [1, 2].map(() => outcomeOf(own.in(() => runInTrace(run, { locks }))));
    await clock.settle();
    const closed = outcomeOf(locks.close({ drainMs: 500 }));
    await clock.advance(499);
    const waiting = [branches[1], ...jobs];
    expect(waiting.map((wait) => wait?.state)).toEqual(Array(3).fill('pending'));
    await clock.advance(1);
    expect([closed.state, ...waiting.map((wait) => wait?.state)]).toEqual(['fulfilled', ...Array(3).fill('rejected')]);
    forever.open();
    await clock.settle();
    expect(await store.remains()).toEqual([]);
    expect(clock.timerCount).toBe(0);
  });

  it('close waits for the reply of an acquire, and releases what it was granted', async () => {
    const { job, locks, clock, store } = setUp();
    const open = store.gate('acquire');
    const coming = outcomeOf(job().in(() => lock.tryAcquire('key')));
    const closed = await clock.settled(outcomeOf(locks.close()));
    expect(closed.state).toBe('pending');
    open();
    await clock.settle();
    expect([closed.state, coming.error]).toEqual(['fulfilled', expect.any(LocksClosedError)]);
    expect(await store.remains()).toEqual([]);
  });

  it('close declares lost what is still held after drainMs, and releases it', async () => {
    const { job, locks, clock, store, events } = setUp();
    const lost = events('lost');
    const hold = await job().in(() => lock.acquire('key'));
    const { signal } = hold;
    const closed = outcomeOf(locks.close({ drainMs: 500 }));
    await clock.advance(499);
    expect(hold.isHeld()).toBe(true);
    await clock.advance(1);
    expect(closed.state).toBe('fulfilled');
    expect(hold.isHeld()).toBe(false);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(lost).toHaveLength(1);
    expect(await store.remains()).toEqual([]);
    expect(clock.timerCount).toBe(0);
  });

  it('close ends each grant in one event, also if the store never answers its release', async () => {
    const { job, locks, clock, store, events } = setUp();
    const [granted, released, lost] = [events('granted'), events('released'), events('lost')];
    const [hold] = [await job().in(() => lock.acquire('released')), await job().in(() => lock.acquire('kept'))];
    store.always('release', { kind: 'lostCall' });
    const late = outcomeOf(hold.release());
    const closed = outcomeOf(locks.close({ drainMs: 500 }));
    await clock.advance(5_000);
    expect([closed.state, late.state]).toEqual(['fulfilled', 'rejected']);
    const ends = (): unknown[] => [...released, ...lost].map(({ holdId }) => holdId);
    expect(ends()).toEqual(granted.map(({ holdId }) => holdId));
    await clock.advance(60_000);
    expect(ends()).toHaveLength(2);
    expect(clock.timerCount).toBe(0);
  });

  it('close takes its drainMs from the options of its Locks', async () => {
    const { job, locks, clock } = setUp({ drainMs: 0 });
    const hold = await job().in(() => lock.acquire('key'));
    const closed = outcomeOf(locks.close());
    await clock.advance(0);
    expect(closed.state).toBe('fulfilled');
    expect(hold.isHeld()).toBe(false);
  });

  it('close runs once, however often it is called', async () => {
    const { job, locks, store } = setUp();
    const hold = await job().in(() => lock.acquire('key'));
    const first = locks.close({ drainMs: 5_000 });
    expect(locks.close({ drainMs: 0 })).toBe(first);
    await hold.release();
    await first;
    await locks.close();
    expect(store.count('release')).toBe(1);
  });

  it('close rejects, and never throws, for an invalid drainMs, and closes nothing', async () => {
    const { job, locks } = setUp();
    for (const drainMs of [-1, 0.5, Number.POSITIVE_INFINITY, '5' as unknown as number])
      await expect(locks.close({ drainMs })).rejects.toThrow(LockConfigError);
    expect(await job().in(() => lock.run('key', () => 'value'))).toBe('value');
  });

  it.each([
    ['an acquire', 'acquire', { kind: 'lostCall' }],
    ['a release', 'release', { kind: 'lostCall' }],
    ['a release, at once', 'release', { kind: 'rejected', error: new Error('down') }],
    ['its stream', 'subscribe', { kind: 'lostCall' }],
  ] as const)('close ends although the store never answers %s', async (_, operation, fault) => {
    const { job, locks, clock, store } = setUp();
    store.always(operation, fault);
    const acquires = [
      outcomeOf(job().in(() => lock.acquire('key'))),
      outcomeOf(job().in(() => lock.tryAcquire('other'))),
    ];
    await clock.advance(1_000);
    const closed = outcomeOf(locks.close({ drainMs: 100 }));
    await clock.advance(100 + 2 * 2_000);
    expect(closed.state).toBe('fulfilled');
    for (const { state } of acquires) expect(state).not.toBe('pending');
  });

  it('close leaves no timer of a search for deadlocks that goes on', async () => {
    const { job, locks, clock, store } = setUp();
    const [one, two] = [job(), job()];
    await one.in(() => lock.acquire('a'));
    await two.in(() => lock.acquire('b'));
    outcomeOf(one.in(() => lock.acquire('b')));
    await clock.settle();
    const open = store.gate('wait');
    outcomeOf(two.in(() => lock.acquire('a')));
    await clock.settle();
    const closed = outcomeOf(locks.close({ drainMs: 0 }));
    await clock.advance(0);
    expect(closed.state).toBe('fulfilled');
    open();
    await clock.settle();
    expect(clock.timerCount).toBe(0);
  });

  it('close leaves no timer of a stream that was refused', async () => {
    const { job, locks, clock, store } = setUp();
    store.next('subscribe', { kind: 'rejected', error: new Error('down') });
    await job().in(() => lock.run('key', () => {}));
    await locks.close();
    expect(clock.timerCount).toBe(0);
  });

  it('close ends the stream of its process', async () => {
    const { job, locks, store } = setUp();
    await job().in(() => lock.run('key', () => {}));
    await locks.close();
    const heard = jest.fn();
    store.onMessage = heard;
    store.broadcast({ kind: 'resubscribed' });
    expect(heard).not.toHaveBeenCalled();
  });

  it('close of Locks that were never used makes no store call', async () => {
    const { locks, store } = setUp();
    await locks.close();
    expect(store.calls).toEqual([]);
  });
});
