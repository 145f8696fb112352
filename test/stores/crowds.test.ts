import { createLocks, type Locks, type LocksOptions, lock } from '../../src/core/index.ts';
import type { LockStore } from '../../src/core/model/store.ts';
import { RedisStore } from '../../src/stores/redis/redis-store.ts';
import { holdIds, type StoreStage } from '../../src/testing/contract/stage.ts';
import { usePostgres } from '../support/postgres/stage.ts';
import { useRedis } from '../support/redis/redis-stage.ts';
import { type Job, startJob } from '../support/stores/set-up.ts';
import { until } from '../support/until.ts';

/** A store for each process, and how many calls its server has had, if it counts them. */
interface Backend {
  readonly stage: StoreStage;
  readonly readers: number;
  createStore(): LockStore;
  calls(): Promise<number>;
}

function redis(): Backend {
  const stage = useRedis();
  const createStore = () => new RedisStore({ client: stage.client });
  return { stage, readers: 1_000, createStore, calls: () => stage.calls() };
}

function postgres(): Backend {
  const stage = usePostgres();
  return { stage, readers: 300, createStore: () => stage.storeOf(), calls: async () => 0 };
}

/** More readers than one call of the store lets in. */
describe.each([
  ['Redis', redis],
  ['PostgreSQL', postgres],
] as const)('A crowd of readers behind a writer, on %s', (_, use) => {
  const { stage, readers: count, createStore, calls } = use();

  it('All get in without a poll, none is lost, and the server is asked about each a few times', async () => {
    const options: LocksOptions = { pollMs: 120_000, waitMs: 300_000, leaseMs: 120_000, storeTimeoutMs: 30_000 };
    let [waiting, inside, renewed, lost] = [0, 0, 0, 0];
    const processes = Array.from({ length: 5 }, (): Locks => {
      const locks = createLocks({ store: createStore(), ...options });
      locks.on('waiting', () => void waiting++);
      locks.on('renewed', () => void renewed++);
      locks.on('lost', () => void lost++);
      return locks;
    });
    const writer = startJob(processes[0] as Locks, undefined);
    const hold = await writer.in(() => lock.acquire('key'));
    const jobs = Array.from({ length: count }, (__, n): Job => {
      const job = startJob(processes[n % 5] as Locks, undefined);
      void job.in(() => lock.acquire('key', { mode: 'read' })).then(() => void inside++);
      return job;
    });
    await until(() => waiting === count);
    await hold.release();
    await until(() => inside === count);
    const before = await calls();
    // All claims become leases.
    await until(() => renewed >= count);
    expect(lost).toBe(0);
    expect((await calls()) - before).toBeLessThan(3 * count);
    await Promise.all([writer, ...jobs].map((job) => job.end()));
    await Promise.all(processes.map((locks) => locks.close()));
  });

  it('One call lets in so many, and nobody else is granted before the readers of a row that goes on', async () => {
    const process = await stage.process();
    const holder = process.line();
    await holder.hold();
    const readers = Array.from({ length: 300 }, () => process.reader());
    for (const reader of readers) await reader.wait({ maxWaiters: 10_000 });
    const writer = await process.line().wait({ maxWaiters: 10_000 });
    await holder.release();
    expect((await stage.order()).holds).toEqual(holdIds(readers.slice(0, 256)));
    expect(await process.reader().status({ queue: false })).toBe('refused');
    const { holds, waiters } = await stage.order();
    expect(holds.sort()).toEqual(holdIds(readers).sort());
    expect(waiters).toEqual([writer.holdId]);
  });
});
