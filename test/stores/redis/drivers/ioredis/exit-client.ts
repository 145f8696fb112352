import { Redis } from 'ioredis';
import { createLocks, lock, runInTrace } from 'reenlock';
import { RedisStore } from 'reenlock/redis';

// One process that exits at the end of a job which has left its holds to the end, or to a listener of `exit`.
async function main(): Promise<void> {
  const [port, mode] = process.argv.slice(2);
  const store = new RedisStore({ client: new Redis(Number(port)) });
  // Without their release, the holds last for longer than the test.
  const locks = createLocks({ store, leaseMs: 60_000, claimMs: 60_000 });
  const job = async (): Promise<void> => {
    const holds = await Promise.all(['a', 'b', 'c'].map((key) => lock.acquire(key)));
    if (mode === 'end') return;
    process.on('exit', () => {
      for (const hold of holds) void hold.release();
    });
    await new Promise((resolve) => setImmediate(resolve));
    process.exit();
  };
  await runInTrace(job, { locks });
  await new Promise((resolve) => process.nextTick(resolve));
  process.exit();
}

void main();
