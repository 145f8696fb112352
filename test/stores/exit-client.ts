import { Redis } from 'ioredis';
import { createLocks, isLockError, lock, runInTrace } from 'reenlock';
import { QuorumStore, type RedisStore } from 'reenlock/redis';
import { disconnectTimeout } from '../support/redis/client.ts';
import { OldRedisStore } from '../support/redis/nodes.ts';

// One process that asks for a lock, says what came of it, closes all that it has opened, and does nothing more. With
// several ports it has a quorum.
const ports = process.argv.slice(2).map(Number);

async function main(): Promise<void> {
  const clients = ports.map((port) => new Redis(port, { maxRetriesPerRequest: 0, disconnectTimeout }));
  for (const client of clients) client.on('error', () => {});
  const stores = clients.map((client) => new OldRedisStore({ client }));
  const store = stores.length > 1 ? new QuorumStore({ stores, nodeTimeoutMs: 10_000 }) : (stores[0] as RedisStore);
  // Where nobody answers, that is how long it takes.
  const storeTimeoutMs = stores.length > 1 ? 20_000 : 500;
  const locks = createLocks({ store, storeTimeoutMs });
  const asked = runInTrace(() => lock.run('order:42', () => 'granted'), { locks });
  const outcome = await asked.catch((error: unknown) => (isLockError(error) ? error.code : String(error)));
  await locks.close();
  for (const client of clients) client.disconnect();
  process.stdout.write(outcome);
}

void main();
