import { createLocks, type Locks, type LocksOptions, lock } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { gate } from '../support/gate.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import { type Job, startJob } from '../support/stores/set-up.ts';
import { until } from '../support/until.ts';

describe('A convoy of readers', () => {
  const redis = useRedis();
  const open: Locks[] = [];
  const jobs: Job[] = [];
  afterEach(async () => {
    await Promise.all(jobs.splice(0).map((job) => job.end()));
    await Promise.all(open.splice(0).map((locks) => locks.close()));
  });

  /** Queues readers behind a writer, in the turns of some processes, and lets the writer go when all of them wait. */
  async function convoy(count: number, options: LocksOptions): Promise<{ inside: () => number; lost: () => number }> {
    let [inside, lost, waiting] = [0, 0, 0];
    for (let i = 0; i < 5; i++) {
      const locks = createLocks({ store: new RedisStore({ client: redis.client }), ...options });
      locks.on('lost', () => {
        lost += 1;
      });
      locks.on('waiting', () => {
        waiting += 1;
      });
      open.push(locks);
    }
    const done = gate();
    const start = (i: number, run: () => Promise<unknown>): void => {
      const job = startJob(open[i % open.length] as Locks, undefined);
      jobs.push(job);
      void job.in(run);
    };
    let isHeld = false;
    start(0, () =>
      lock.run('key', async () => {
        isHeld = true;
        await done;
      }),
    );
    await until(() => isHeld);
    for (let i = 0; i < count; i++) {
      start(i, async () => {
        await lock.acquire('key', { mode: 'read' });
        inside += 1;
      });
    }
    await until(() => waiting === count);
    done.open();
    return { inside: () => inside, lost: () => lost };
  }

  it('A thousand readers behind a writer all get in, none is lost, and the server is asked about each a few times', async () => {
    const { inside, lost } = await convoy(1_000, { waitMs: 60_000 });
    await until(() => inside() === 1_000);
    await redis.client.config('RESETSTAT');
    // All claims become leases.
    let renewed = 0;
    for (const locks of open) {
      locks.on('renewed', () => {
        renewed += 1;
      });
    }
    await until(() => renewed >= 1_000);
    expect(lost()).toBe(0);
    expect(await redis.calls()).toBeLessThan(3_000);
  });
});
