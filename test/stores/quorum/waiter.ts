import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { createLocks, isLockError, lock, runInTrace } from 'reenlock';
import { QuorumStore } from 'reenlock/redis';
import { disconnectTimeout } from '../../support/redis/client.ts';
import { OldRedisStore } from '../../support/redis/nodes.ts';

// One process whose jobs wait for one key, and write each entry and exit into a journal on a server apart.
const [journalPort, leaseMs, ...ports] = process.argv.slice(2).map(Number);
const jobs = 3;
const turns = 8;

async function main(): Promise<void> {
  const journal = new Redis(journalPort as number);
  const clients = ports.map(
    (port) => new Redis(port, { retryStrategy: () => 10, maxRetriesPerRequest: 0, disconnectTimeout }),
  );
  for (const client of clients) client.on('error', () => {});
  const stores = clients.map((client) => new OldRedisStore({ client }));
  const store = new QuorumStore({ stores, nodeTimeoutMs: 10_000, maxLeaseMs: leaseMs });
  const locks = createLocks({ store, leaseMs, waitMs: 60_000, storeTimeoutMs: 30_000 });
  let waits = 0;
  let lost = 0;
  locks.on('waiting', () => {
    waits += 1;
  });
  const turn = async (): Promise<void> => {
    await lock.run('order:42', async ({ fence }) => {
      await journal.rpush('journal', `enter ${fence}`);
      await sleep(Math.random() * 3);
      await journal.rpush('journal', `leave ${fence}`);
    });
  };
  const job = async (): Promise<void> => {
    for (let left = turns; left > 0; left--) {
      await runInTrace(turn, { locks }).catch((error: unknown) => {
        if (!isLockError(error) || error.code !== 'ERR_LOCK_LOST') throw error;
        lost += 1;
      });
    }
  };
  await Promise.all(Array.from({ length: jobs }, job));
  await locks.close();
  for (const client of [journal, ...clients]) client.disconnect();
  process.stdout.write(JSON.stringify({ hasWaited: waits > 0, lost }));
}

void main();
