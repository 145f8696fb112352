import {
  getLock,
  type Hold,
  LockConfigError,
  LockLostError,
  LockTimeoutError,
  lock,
  resumeHold,
} from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

const two = { permits: 2 } as const;

/** Holds all but none of the key's permits. */
async function full(setup: Setup): Promise<[Hold, Hold]> {
  return [await taken(setup, two), await taken(setup, two)];
}

describe('A key with permits', () => {
  it('is held by so many owners of any process at once, and the next waiter gets the first permit that is released', async () => {
    const setup = setUp();
    const sibling = setup.sibling();
    const holds = [await taken(setup, two), await taken(sibling, two)] as const;
    const first = await queued(setup, two);
    const second = await queued(sibling, two);
    expect([first.state, second.state]).toEqual(['pending', 'pending']);
    await holds[1].release();
    await first.settled;
    expect([first.value?.isHeld(), second.state, holds[0].isHeld()]).toEqual([true, 'pending', true]);
    await first.value?.release();
    await second.settled;
    expect(second.value?.isHeld()).toBe(true);
  });

  it('is re-entered by its owner without a store call, and without another permit', async () => {
    const setup = setUp();
    const pool = getLock('key', two);
    const job = setup.job();
    const outer = await job.in(() => pool.acquire());
    const calls = setup.store.count('acquire');
    const inner = await job.in(() => pool.acquire());
    expect(setup.store.count('acquire')).toBe(calls);
    expect([inner.fence, job.in(() => pool.holdCount())]).toEqual([outer.fence, 2]);
    expect((await taken(setup, two)).isHeld()).toBe(true);
    await outer.release();
    expect(await setup.job().in(() => pool.tryAcquire())).toBeNull();
    await inner.release();
    expect(await setup.job().in(() => pool.tryAcquire())).not.toBeNull();
  });

  it('gives one owner one permit, however many of its requests hold it; the event `entered` shows them', async () => {
    const setup = setUp();
    const sibling = setup.sibling();
    const entered = sibling.events('entered');
    await setup.job('trace').in(() => lock.acquire('key', two));
    await sibling.job('trace').in(() => lock.acquire('key', two));
    expect(entered).toMatchObject([{ mode: 'permit', traceId: 'trace', branch: '', otherHolds: 1 }]);
    expect((await taken(setup, two)).isHeld()).toBe(true);
    expect(await setup.locks.inspect('key')).toMatchObject({ permits: { limit: 2, held: 2 }, holds: { length: 3 } });
  });

  it('takes a permit for each branch of a request with `reentrant: false`', async () => {
    const setup = setUp();
    const job = setup.job();
    const branch = () => job.in(() => lock.tryAcquire('key', { ...two, reentrant: false }));
    const branches = [await branch(), await branch(), await branch()];
    expect(branches.map((hold) => hold !== null)).toEqual([true, true, false]);
  });

  it('renews and loses each hold on its own, and a force release takes all of them', async () => {
    const setup = setUp();
    const fixed = await taken(setup, { ...two, renew: false });
    const renewed = await taken(setup, two);
    const waiter = await queued(setup, { ...two, waitMs: 60_000 });
    await setup.clock.advance(31_000);
    expect([fixed.isHeld(), renewed.isHeld(), waiter.value?.isHeld()]).toEqual([false, true, true]);
    expect(await setup.job().in(() => getLock('key', two).forceRelease())).toBe(true);
    await setup.clock.settle();
    for (const hold of [renewed, waiter.value as Hold]) {
      expect([hold.isHeld(), hold.signal.reason instanceof LockLostError]).toEqual([false, true]);
    }
    expect((await full(setup)).every((hold) => hold.isHeld())).toBe(true);
  });

  it('is shown with its permits, and its holds and waiters have the mode `permit` in `inspect`, in events and in logs', async () => {
    const setup = setUp();
    const events = ['granted', 'waiting', 'released'] as const;
    const seen = events.map((event) => setup.events(event));
    const holds = await full(setup);
    await queued(setup, two);
    const info = await setup.locks.inspect('key');
    expect(info.permits).toEqual({ limit: 2, held: 2 });
    expect([...info.holds, ...info.waiters].map(({ mode }) => mode)).toEqual(['permit', 'permit', 'permit']);
    await holds[0].release();
    await setup.clock.settle();
    expect(seen.map((each) => new Set(each.map(({ mode }) => mode)))).toEqual(events.map(() => new Set(['permit'])));
    expect(JSON.parse(JSON.stringify(holds[1]))).toMatchObject({ mode: 'permit' });
    const { locks } = await setup.locks.list();
    expect(locks).toMatchObject([{ key: 'key', permits: { limit: 2, held: 2 } }]);
  });

  it('has no permits in `inspect` once nobody holds it, and takes another number then', async () => {
    const setup = setUp();
    for (const hold of await full(setup)) await hold.release();
    expect((await setup.locks.inspect('key')).permits).toBeUndefined();
    await taken(setup, { permits: 1 });
    expect((await setup.locks.inspect('key')).permits).toEqual({ limit: 1, held: 1 });
  });

  it('times out for a waiter as any key does, and its wait is never a deadlock', async () => {
    const setup = setUp();
    const [one, other] = [setup.job(), setup.job()];
    await one.in(() => lock.acquire('order'));
    await other.in(() => lock.acquire('key', { permits: 1 }));
    const writing = outcomeOf(other.in(() => lock.acquire('order', { waitMs: 5_000 })));
    const waiting = outcomeOf(one.in(() => lock.acquire('key', { permits: 1, waitMs: 4_000 })));
    await setup.clock.advance(6_000);
    expect([writing.error, waiting.error]).toEqual([expect.any(LockTimeoutError), expect.any(LockTimeoutError)]);
  });

  it('can be one of several keys that are acquired together', async () => {
    const setup = setUp();
    const job = setup.job();
    await taken(setup, two);
    const batch = await job.in(() => lock.acquireAll(['key', 'other'], two));
    expect((await setup.locks.inspect('key')).permits).toEqual({ limit: 2, held: 2 });
    expect((await setup.locks.inspect('other')).permits).toEqual({ limit: 2, held: 1 });
    await batch.release();
    expect((await setup.locks.inspect('other')).holds).toEqual([]);
  });

  it('is free for `whenFree` with its permits as soon as one of them is', async () => {
    const setup = setUp();
    const [hold] = await full(setup);
    const free = await setup.clock.settled(outcomeOf(setup.job().in(() => getLock('key', two).whenFree())));
    expect(free.state).toBe('pending');
    await hold.release();
    await free.settled;
    expect(free.state).toBe('fulfilled');
  });
});

describe('A permit that is detached', () => {
  it('stays taken until it is resumed and released, by a token that knows the permits', async () => {
    const setup = setUp();
    const job = setup.job();
    const hold = await job.in(() => lock.acquire('key', two));
    const token = await hold.detach({ leaseMs: 60_000 });
    await job.end();
    await taken(setup, two);
    expect(await setup.job().in(() => lock.tryAcquire('key', two))).toBeNull();
    const next = setup.sibling().job();
    const resumed = await next.in(() => resumeHold(token));
    expect(resumed.fence).toBeGreaterThan(hold.fence);
    expect((await next.in(() => lock.acquire('key', two))).fence).toBe(resumed.fence);
    expect(await setup.job().in(() => lock.tryAcquire('key', two))).toBeNull();
    await next.end();
    expect(await setup.job().in(() => lock.tryAcquire('key', two))).not.toBeNull();
  });

  it('is not passed on while nested work of its request uses it, too: that would make one owner too many', async () => {
    const setup = setUp();
    const one = { permits: 1 } as const;
    const work = gate();
    const { in: inJob } = setup.job();
    const hold = await inJob(() => lock.acquire('key', one));
    const nested = inJob(() => lock.run('key', () => work, one));
    await setup.clock.settle();
    const detached = outcomeOf(hold.detach({ leaseMs: 60_000 }));
    await setup.clock.settle();
    expect(detached.error).toBeInstanceOf(LockConfigError);
    expect(await setup.job().in(() => lock.tryAcquire('key', one))).toBeNull();
    work.open();
    await nested;
    expect(await setup.job().in(() => lock.tryAcquire('key', one))).not.toBeNull();
  });

  it('must be the only hold of its owner: else detach fails, and the permit is released', async () => {
    const setup = setUp();
    const [one, other] = [setup.job('trace'), setup.sibling().job('trace')];
    const hold = await one.in(() => lock.acquire('key', two));
    await other.in(() => lock.acquire('key', two));
    await expect(hold.detach({ leaseMs: 60_000 })).rejects.toThrow(LockConfigError);
    expect(await setup.locks.inspect('key')).toMatchObject({ permits: { limit: 2, held: 1 }, holds: { length: 1 } });
  });
});

describe('Another number of permits than the key has', () => {
  it('is a LockConfigError at re-entry, without a store call', async () => {
    const setup = setUp();
    const job = setup.job();
    await job.in(() => lock.acquire('key', two));
    const calls = setup.store.count('acquire');
    for (const options of [{ permits: 1 }, {}, { mode: 'read' }] as const) {
      const got = 'permits' in options ? '`1`' : 'none';
      await expect(job.in(() => lock.acquire('key', options))).rejects.toThrow(
        `to have the \`permits\` of that hold, \`2\`, got ${got}: give both the same number`,
      );
    }
    await job.in(() => lock.acquire('other'));
    await expect(job.in(() => lock.acquire('other', two))).rejects.toThrow(LockConfigError);
    expect(setup.store.count('acquire')).toBe(calls + 1);
  });
});

describe('The option `permits`', () => {
  it('excludes `mode`, also if one is given to getLock and the other to a call', async () => {
    const setup = setUp();
    const both = { permits: 2, mode: 'read' } as const;
    expect(() => getLock('key', both)).toThrow(/^Expected `mode` or `permits`, got both, `'read'` and `2`:/);
    const job = setup.job();
    await expect(job.in(() => getLock('key', two).acquire({ mode: 'write' }))).rejects.toThrow(LockConfigError);
    await expect(job.in(() => getLock('key', { mode: 'read' }).tryAcquire(two))).rejects.toThrow(LockConfigError);
    await expect(job.in(() => lock.acquire('key', both))).rejects.toThrow(LockConfigError);
  });

  it('is refused with a LockConfigError by a store without permits, before it is called', async () => {
    const setup = setUp();
    Object.assign(setup.store, { capabilities: { ...setup.store.capabilities, permits: false } });
    await expect(taken(setup, two)).rejects.toThrow(/lacks them: take another store/);
    expect(setup.store.count('acquire')).toBe(0);
  });
});
