import { Redis } from 'ioredis';
import { createLocks, lock, runInTrace } from 'reenlock';
import { RedisStore } from 'reenlock/redis';

// One process that exits at the end of a job which has left its holds to the end.
async function main(): Promise<void> {
  const store = new RedisStore({ client: new Redis(Number(process.argv[2])) });
  // Without their release, the holds last for longer than the test.
  const locks = createLocks({ store, leaseMs: 60_000, claimMs: 60_000 });
  await runInTrace(() => Promise.all(['a', 'b', 'c'].map((key) => lock.acquire(key))), { locks });
  await new Promise((resolve) => process.nextTick(resolve));
  process.exit();
}

void main();
