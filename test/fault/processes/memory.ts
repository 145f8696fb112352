/** Tells how large the heap is with as many waiters as it is told to have, or after as many keys were used. */
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import { createLocks, lock, runInTrace } from '../../../src/core/index.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';

export interface WaitersResult {
  /** With as many jobs as there will be waiters, which do nothing yet. */
  readonly idle: number;
  readonly waiting: number;
  /** Before there was any of them, and when all are over. */
  readonly before: number;
  readonly after: number;
}

export interface KeysResult {
  /** After the first thousands of keys, and after all. */
  readonly early: number;
  readonly late: number;
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const [what, port, count = 0] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const early = 10_000;
const client = new Redis(port);
const limits = { maxWaiters: count, maxWaitersPerKey: count };
// A busy machine takes its time for so many at once.
const patience = { waitMs: Number.POSITIVE_INFINITY, storeTimeoutMs: 60_000 };
const locks = createLocks({ store: new RedisStore({ client }), ...limits, ...patience });

async function heapSize(): Promise<number> {
  for (let n = 0; n < 3; n++) {
    await turn();
    collectGarbage();
  }
  return process.memoryUsage().heapUsed;
}

async function withWaiters(many: number): Promise<WaitersResult> {
  const before = await heapSize();
  let queued = 0;
  const full = new Promise<void>((resolve) => {
    const stop = locks.on('waiting', () => {
      queued += 1;
      if (queued < many) return;
      stop();
      resolve();
    });
  });
  const begin: (() => void)[] = [];
  const jobs = Array.from({ length: many }, () => runInTrace(() => waiter(begin), { locks }));
  const idle = await heapSize();
  const waiting = await runInTrace(
    () =>
      lock.run('key', async () => {
        for (const go of begin.splice(0)) go();
        await full;
        return heapSize();
      }),
    { locks },
  );
  await Promise.all(jobs.splice(0));
  return { before, idle, waiting, after: await heapSize() };
}

/** Waits for its turn to wait. */
async function waiter(begin: (() => void)[]): Promise<void> {
  await new Promise<void>((resolve) => {
    begin.push(resolve);
  });
  await (await lock.acquire('key')).release();
}

/** Uses keys that nobody uses again, some hundreds at once. */
async function useKeys(from: number, to: number): Promise<void> {
  const atOnce = 500;
  for (let first = from; first < to; first += atOnce) {
    const some = Array.from({ length: Math.min(atOnce, to - first) }, (_, n) => `order:${first + n}`);
    await Promise.all(some.map((key) => runInTrace(() => lock.run(key, () => {}), { locks })));
  }
}

async function withKeys(): Promise<KeysResult> {
  await useKeys(0, early);
  const heap = await heapSize();
  await useKeys(early, count);
  return { early: heap, late: await heapSize() };
}

async function main(): Promise<void> {
  await client.ping();
  // The first ones make Node's own heap grow: its maps stay as large as they were once.
  if (what === 'waiters') await withWaiters(count);
  const result = what === 'waiters' ? await withWaiters(count) : await withKeys();
  await locks.close();
  client.disconnect();
  process.send?.(result, () => process.disconnect());
}

void main();
