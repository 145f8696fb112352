import { createLocks, type Hold, type Locks, type LockTimeoutError, lock } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { type Job, startJob } from '../../support/stores/set-up.ts';

const leaseMs = 20_000;

describe('retryAfterMs on Redis', () => {
  const stage = useRedis();
  const jobs: Job[] = [];
  const open: Locks[] = [];
  afterEach(async () => {
    await Promise.all(jobs.splice(0).map((job) => job.end()));
    await Promise.all(open.splice(0).map((locks) => locks.close()));
  });

  function process(): Locks {
    const locks = createLocks({ store: new RedisStore({ client: stage.client }), leaseMs });
    open.push(locks);
    return locks;
  }

  function acquire(locks: Locks, waitMs: number): Promise<Hold> {
    const job = startJob(locks, undefined);
    jobs.push(job);
    return job.in(() => lock.acquire('key', { waitMs }));
  }

  async function queued(locks: Locks): Promise<{ hold: Promise<Hold> }> {
    const isWaiting = new Promise((resolve) => locks.on('waiting', resolve));
    const hold = acquire(locks, 60_000);
    await isWaiting;
    return { hold };
  }

  async function refused(locks: Locks): Promise<number> {
    const error = await acquire(locks, 0).catch((error: LockTimeoutError) => error);
    return (error as LockTimeoutError).retryAfterMs;
  }

  it('retryAfterMs counts the waiters before, of any process: each for a lease if none was seen to end', async () => {
    const [one, two, three] = [process(), process(), process()];
    const holder = await acquire(one, 0);
    const first = await queued(two);
    const second = await queued(one);
    // Three times what is left of the lease, which is renewed.
    const inMs = await refused(three);
    expect(inMs).toBeGreaterThan(leaseMs);
    expect(inMs).toBeLessThanOrEqual(3 * leaseMs);
    await holder.release();
    await (await first.hold).release();
    await (await second.hold).release();
  });

  it('retryAfterMs uses the turns that waiters saw', async () => {
    const [one, two] = [process(), process()];
    const holder = await acquire(one, 0);
    const [first, second] = [await queued(two), await queued(two)];
    const startedAt = performance.now();
    const last = await queued(two);
    await holder.release();
    await (await first.hold).release();
    const holding = await second.hold;
    // The last one saw two turns; the holder's and its own are still to come.
    const inMs = await refused(two);
    const waitedMs = performance.now() - startedAt;
    expect(inMs).toBeLessThanOrEqual(Math.ceil(waitedMs) + 1);
    await holding.release();
    await (await last.hold).release();
  });
});
