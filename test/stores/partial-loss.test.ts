import { createLocks, type Hold, type Locks, lock } from 'reenlock';
import type { PostgresStore } from 'reenlock/postgres';
import { RedisStore } from 'reenlock/redis';
import { usePostgres } from '../support/postgres/stage.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import { type Job, startJob } from '../support/stores/set-up.ts';
import { until } from '../support/until.ts';

/** A store, and how its server loses the newest entries of a queue: the older ones are there. */
interface Backend {
  createStore(): RedisStore | PostgresStore;
  loseNewest(count: number): Promise<unknown>;
}

/** As after a failover, or a restart with `appendfsync everysec`. */
function redis(): Backend {
  const stage = useRedis();
  return {
    createStore: () => new RedisStore({ client: stage.client }),
    async loseNewest(count) {
      const [queue, waiters] = ['reenlock:{key}:queue', 'reenlock:{key}:waiters'] as const;
      for (const holdId of await stage.client.zrange(queue, String(-count), '-1')) {
        const [, owner] = String(await stage.client.hget(waiters, `w:${holdId}`)).split(' ');
        await stage.client.zrem(queue, holdId);
        await stage.client.hdel(waiters, `w:${holdId}`, `c:${owner}`);
      }
    },
  };
}

/** As after a failover to an asynchronous standby. */
function postgres(): Backend {
  const stage = usePostgres();
  return {
    createStore: () => stage.storeOf(),
    loseNewest: (count) =>
      stage.pool.query(
        `WITH lost AS (
          DELETE FROM reenlock.waiters WHERE nr IN (SELECT nr FROM reenlock.waiters ORDER BY nr DESC LIMIT ${count}) RETURNING nr
        ) UPDATE reenlock.locks SET waiters = waiters - (SELECT count(*) FROM lost)`,
      ),
  };
}

describe.each([
  ['Redis', redis],
  ['PostgreSQL', postgres],
] as const)('A %s server that returns without its latest writes', (_, use) => {
  const backend = use();
  const jobs: Job[] = [];
  let locks: Locks;
  beforeEach(() => {
    locks = createLocks({ store: backend.createStore(), pollMs: 100 });
  });
  afterEach(async () => {
    await Promise.all(jobs.splice(0).map((job) => job.end()));
    await locks.close();
  });

  function acquire(): Promise<Hold> {
    const job = startJob(locks, undefined);
    jobs.push(job);
    return job.in(() => lock.acquire('key', { waitMs: 60_000 }));
  }

  async function waiters(): Promise<readonly string[]> {
    return (await locks.inspect('key')).waiters.map(({ holdId }) => holdId);
  }

  it('The newest waiters are queued again in their order while the oldest one still waits', async () => {
    const holder = await acquire();
    const holds = [];
    for (let count = 1; count <= 4; count++) {
      holds.push(acquire());
      await until(async () => (await waiters()).length === count);
    }
    const before = await waiters();
    await backend.loseNewest(2);
    await until(async () => (await waiters()).length === 4);
    expect(await waiters()).toEqual(before);
    await holder.release();
    for (const hold of holds) await (await hold).release();
  });
});
