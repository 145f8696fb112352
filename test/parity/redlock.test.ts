import { LockStoreError, type Locks, lock, runInTrace } from 'reenlock';
import { QuorumStore } from 'reenlock/redis';
import { buildLocks } from '../../src/core/runtime/locks.ts';
import { ManualClock } from '../support/clock/manual-clock.ts';
import { OldRedisStore, RedisNodes } from '../support/redis/nodes.ts';
import { FakeStore } from '../support/stores/fake-store.ts';

const nodeTimeoutMs = 100;
const leaseMs = 1_000;
const down = { kind: 'rejected', error: new Error('ECONNREFUSED') } as const;

/** What an application has that used several independent servers for one lock. */
describe('a lock on several independent instances', () => {
  const clock = new ManualClock();
  let nodes: FakeStore[] = [];
  let processes: Locks[] = [];
  beforeEach(() => {
    nodes = Array.from({ length: 5 }, () => new FakeStore(clock));
    processes = [1, 2].map(() => {
      const store = new QuorumStore({ stores: nodes, nodeTimeoutMs }, clock);
      return buildLocks({ store, leaseMs, storeTimeoutMs: 1_000, waitMs: 0 }, clock);
    });
  });
  afterEach(async () => {
    const closed = Promise.all(processes.map((locks) => locks.close()));
    do await clock.advance(leaseMs);
    while (clock.timerCount > 0);
    await closed;
  });

  const inProcess = <T>(index: number, fn: () => Promise<T>): Promise<T> =>
    runInTrace(fn, { traceId: `trace-${index}`, locks: processes[index]! });

  it('excludes the other process, and is free after the release', async () => {
    await inProcess(0, async () => {
      const hold = await lock.acquire('order:42');
      expect(await inProcess(1, () => lock.tryAcquire('order:42'))).toBeNull();
      await hold.release();
      const next = await inProcess(1, async () => (await lock.tryAcquire('order:42'))?.fence);
      expect(next).toBeGreaterThan(hold.fence);
    });
  });

  it('goes on while a minority of the instances is down: acquire, renewal, re-entry, release', async () => {
    for (const node of nodes.slice(0, 2))
      for (const operation of ['acquire', 'renew', 'release'] as const) node.always(operation, down);
    let renewals = 0;
    processes[0]!.on('renewed', () => {
      renewals += 1;
    });
    await inProcess(0, async () => {
      await lock.run('order:42', async (outer) => {
        await clock.advance(3 * leaseMs);
        expect(renewals).toBeGreaterThan(3);
        expect(outer.isHeld()).toBe(true);
        await lock.run('order:42', async (inner) => expect(inner.fence).toBe(outer.fence));
        expect(await inProcess(1, () => lock.tryAcquire('order:42'))).toBeNull();
      });
    });
    await inProcess(1, () => lock.run('order:42', async () => {}));
  });

  it('A quorum fails while a majority is down, and nobody gets a hold', async () => {
    for (const node of nodes.slice(0, 3)) node.always('acquire', down);
    await expect(inProcess(0, () => lock.acquire('order:42'))).rejects.toBeInstanceOf(LockStoreError);
    for (const node of nodes) node.heal();
    await inProcess(1, () => lock.run('order:42', async () => {}));
  });

  it('is re-entered from another process of the same trace', async () => {
    await runInTrace(
      async () => {
        const outer = await lock.acquire('order:42');
        const inner = runInTrace(() => lock.run('order:42', async ({ fence }) => fence), {
          traceId: 'one-trace',
          locks: processes[1]!,
        });
        expect(await inner).toBe(outer.fence);
        expect(outer.isHeld()).toBe(true);
      },
      { traceId: 'one-trace', locks: processes[0]! },
    );
  });

  it('is free again when its holder died, after the lease', async () => {
    const store = new QuorumStore({ stores: nodes, nodeTimeoutMs }, clock);
    const request = {
      id: 'order:42',
      holdId: 'dead',
      owner: 'dead',
      process: 'dead',
      claimMs: 1_000,
      mode: 'write' as const,
      priority: 0,
    };
    const terms = { leaseMs, queue: false, maxWaiters: 1, livenessMs: 1_000 };
    expect((await store.acquire(request, terms)).status).toBe('granted');
    const next = { ...request, holdId: 'next', owner: 'next' };
    await clock.advance(leaseMs - 1);
    expect(await store.acquire(next, terms)).toMatchObject({ status: 'refused', leaseRemainingMs: 1 });
    await clock.advance(1);
    expect((await store.acquire(next, terms)).status).toBe('granted');
    await store.release(next, { tombstoneMs: 0 });
  });
});

describe('several independent Redis instances for availability (Redlock)', () => {
  const redis = new RedisNodes();
  const clock = new ManualClock();
  let processes: Locks[] = [];
  beforeAll(() => redis.start(3));
  beforeEach(() => {
    processes = [1, 2].map(() => {
      const clients = redis.connect({ maxRetriesPerRequest: 0 });
      const stores = clients.map((client) => new OldRedisStore({ client }));
      return buildLocks({ store: new QuorumStore({ stores }, clock) }, clock);
    });
  });
  afterEach(async () => {
    const closed = Promise.all(processes.map((locks) => locks.close({ drainMs: 0 })));
    // Dead servers are asked to give back until the lease is over.
    do await clock.advance(1_000);
    while (clock.timerCount > 0);
    await closed;
    await redis.disconnect();
  });
  afterAll(() => redis.stop());

  const inProcess = <T>(index: number, fn: () => Promise<T>): Promise<T> =>
    runInTrace(fn, { traceId: `trace-${index}`, locks: processes[index]! });

  it('one of three servers may be killed in the course of a hold; with two, nobody is let in', async () => {
    // Both hear of what all servers tell.
    for (const index of [0, 1]) await inProcess(index, () => lock.run('order:42', async () => {}));
    await inProcess(0, async () => {
      const hold = await lock.acquire('order:42');
      await redis.servers[0]!.kill();
      await hold.extend(60_000);
      expect(await inProcess(1, () => lock.tryAcquire('order:42'))).toBeNull();
      await hold.release();
      const next = await inProcess(1, () => lock.run('order:42', async ({ fence }) => fence));
      expect(next).toBeGreaterThan(hold.fence);
    });
    await redis.servers[1]!.kill();
    await expect(inProcess(0, () => lock.tryAcquire('order:42'))).rejects.toBeInstanceOf(LockStoreError);
  });
});
