import { createLocks, DeadlockError, type Hold, type Locks, lock } from 'reenlock';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { type Job, type Outcome, outcomeOf, startJob } from '../../support/stores/set-up.ts';
import { until } from '../../support/until.ts';

describe('on Redis', () => {
  const stage = useRedis();
  let locks: Locks;
  let jobs: Job[];
  beforeEach(() => {
    jobs = [];
    locks = createLocks({ store: stage.store, pollMs: 60_000, waitMs: 60_000 });
  });
  afterEach(async () => {
    for (const job of jobs) await job.end();
    await locks.close({ drainMs: 0 });
  });

  const job = (traceId?: string): Job => {
    jobs.push(startJob(locks, traceId));
    return jobs.at(-1)!;
  };
  const queued = async (waiter: Job, key: string): Promise<Outcome<Hold>> => {
    const isQueued = new Promise<void>((resolve) => locks.on('waiting', () => resolve()));
    const outcome = outcomeOf(waiter.in(() => lock.acquire(key)));
    await isQueued;
    return outcome;
  };

  it('a request of its own trace that holds nothing pays one call to be queued, and writes no edge', async () => {
    await job().in(() => lock.acquire('key'));
    const before = await stage.calls();
    await queued(job(), 'key');
    // Whatever it had sent would have come before.
    await stage.client.ping();
    expect((await stage.calls()) - before).toBe(1);
    expect(await stage.client.keys('*:edges')).toEqual([]);
  });

  it('one that holds a key pays three calls more', async () => {
    await job().in(() => lock.acquire('key'));
    const waiter = job();
    await waiter.in(() => lock.acquire('other'));
    const before = await stage.calls();
    await queued(waiter, 'key');
    // Its edge, its own wait, and what the holder waits for.
    await until(async () => (await stage.calls()) - before === 4);
    expect(await stage.client.keys('*:edges')).toHaveLength(1);
  });

  it('keys and traces of any characters close a ring, and a key as it was written is named', async () => {
    const keys = ['{a} b%|\n', `${'long'.repeat(300)} "ü"`] as const;
    const [one, two] = [job('a.b_c-d'), job()];
    await one.in(() => lock.acquire(keys[0]));
    await two.in(() => lock.acquire(keys[1]));
    const first = await queued(one, keys[1]);
    await until(async () => (await stage.client.keys('*:edges')).length === 1);
    const last = await queued(two, keys[0]);
    await last.settled;
    const { error } = last;
    expect(error).toBeInstanceOf(DeadlockError);
    expect((error as DeadlockError).cycle).toMatchObject([{ key: keys[0] }, { traceId: 'a.b_c-d', key: keys[1] }]);
    await two.end();
    await first.settled;
    expect(first.state).toBe('fulfilled');
  });
});
