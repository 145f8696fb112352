/**
 * A process of its own with a `Locks` on the Redis server at the URL that is its argument. It does as its messages say, for
 * any number of jobs, answers each, and tells who waits.
 */
import { Redis } from 'ioredis';
import { createLocks, DeadlockError, type DeadlockWait, lock } from '../../../../src/core/index.ts';
import { RedisStore } from '../../../../src/stores/redis/redis-store.ts';
import { type Job, startJob } from '../../../support/stores/set-up.ts';

export interface Order {
  readonly id: number;
  readonly job: string;
  /** Undefined for a trace of the job's own. */
  readonly traceId?: string;
  /** Without a key the job ends. */
  readonly key?: string;
}

export type Told =
  | { readonly kind: 'done'; readonly id: number }
  | { readonly kind: 'refused'; readonly id: number; readonly code: string; readonly cycle?: readonly DeadlockWait[] }
  | { readonly kind: 'waiting'; readonly key: string };

const client = new Redis(process.argv[2] as string);
const locks = createLocks({ store: new RedisStore({ client }), pollMs: 100, waitMs: 60_000 });
const jobs = new Map<string, Job>();

locks.on('waiting', ({ key }) => tell({ kind: 'waiting', key }));
process.on('message', (order: Order) => {
  carryOut(order).then(
    () => tell({ kind: 'done', id: order.id }),
    (error) => {
      const cycle = error instanceof DeadlockError ? { cycle: error.cycle } : {};
      tell({ kind: 'refused', id: order.id, code: error.code ?? String(error), ...cycle });
    },
  );
});
process.once('SIGTERM', async () => {
  for (const job of jobs.values()) await job.end();
  await locks.close({ drainMs: 0 });
  await client.quit();
  process.exit(0);
});

async function carryOut({ job: name, traceId, key }: Order): Promise<void> {
  const job = jobs.get(name) ?? startJob(locks, traceId);
  jobs.set(name, job);
  if (key !== undefined) {
    await job.in(() => lock.acquire(key));
    return;
  }
  jobs.delete(name);
  await job.end();
}

function tell(what: Told): void {
  process.send?.(what);
}
