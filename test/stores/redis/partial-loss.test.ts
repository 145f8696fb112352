import { createLocks, type Hold, type Locks, lock } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { type Job, startJob } from '../../support/stores/set-up.ts';
import { until } from '../../support/until.ts';

watchLeaks();

describe('A server that comes back without its latest writes', () => {
  const stage = useRedis();
  const jobs: Job[] = [];
  let locks: Locks;
  beforeEach(() => {
    locks = createLocks({ store: new RedisStore({ client: stage.client }), pollMs: 100 });
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

  /** As after a failover, or a restart with `appendfsync everysec`: the newest entries are gone, the older ones are there. */
  async function loseNewest(count: number): Promise<void> {
    const queue = 'reenlock:{key}:queue';
    const members = await stage.client.zrange(queue, '-inf', '(0', 'BYSCORE');
    const lost = members.slice(-count);
    await stage.client.zrem(queue, ...lost, ...lost.map((member) => `:o${member.split(' ')[1]}`));
  }

  it('The newest waiters are queued again in their order while the oldest one still waits', async () => {
    const holder = await acquire();
    const holds = [];
    for (let count = 1; count <= 4; count++) {
      holds.push(acquire());
      await until(async () => (await waiters()).length === count);
    }
    const before = await waiters();
    await loseNewest(2);
    await until(async () => (await waiters()).length === 4);
    expect(await waiters()).toEqual(before);
    await holder.release();
    for (const hold of holds) await (await hold).release();
  });
});
