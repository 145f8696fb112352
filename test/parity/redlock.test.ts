import { LockStoreError, type Locks, lock, runInTrace } from 'reenlock';
import { QuorumStore } from 'reenlock/redis';
import { buildLocks } from '../../src/core/runtime/locks.ts';
import { ManualClock } from '../support/clock/manual-clock.ts';
import { OldRedisStore, RedisNodes } from '../support/redis/nodes.ts';

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
