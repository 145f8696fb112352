import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockStoreError } from '../../../src/core/model/errors/failures.ts';
import { QuorumStore } from '../../../src/stores/quorum/quorum-store.ts';
import { disconnectTimeout } from '../../support/redis/client.ts';
import { OldRedisStore } from '../../support/redis/nodes.ts';

// One process of a contest: takes its turns on one key, and writes each entry and exit into a journal on a server apart.
const [journalPort, ...ports] = process.argv.slice(2).map(Number);
const turns = 15;

async function main(): Promise<void> {
  const journal = new Redis(journalPort as number);
  const clients = ports.map(
    (port) => new Redis(port, { retryStrategy: () => 10, maxRetriesPerRequest: 0, disconnectTimeout }),
  );
  for (const client of clients) client.on('error', () => {});
  const store = new QuorumStore({ stores: clients.map((client) => new OldRedisStore({ client })), nodeTimeoutMs: 500 });
  for (let turn = 0; turn < turns; ) {
    const holdId = randomUUID();
    const request = {
      id: 'order:42',
      holdId,
      owner: holdId,
      process: String(process.pid),
      claimMs: 1_000,
      mode: 'write' as const,
      priority: 0,
    };
    const terms = { leaseMs: 10_000, queue: true, maxWaiters: 1, livenessMs: 1_000 };
    const reply = await orStoreError(store.acquire(request, terms));
    if (reply?.status === 'granted') {
      turn += 1;
      await journal.rpush('journal', `enter ${holdId} ${reply.grant.fence}`);
      await sleep(Math.random() * 3);
      await journal.rpush('journal', `leave ${holdId}`);
    }
    await orStoreError(store.release(request, { tombstoneMs: 10_000 }));
    await sleep(Math.random() * 20);
  }
  for (const client of [journal, ...clients]) client.disconnect();
}

/** A node is killed in the course of the contest: calls may find no quorum for a moment. */
async function orStoreError<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof LockStoreError) return undefined;
    throw error;
  }
}

void main();
