/** Locks for some rounds, with waits and refusals, and sends how large the heap was after each, and what was left. */
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Redis } from 'ioredis';
import { createLocks, lock, runInTrace } from '../../../src/core/index.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';

export interface LoopResult {
  readonly sizes: readonly number[];
  readonly listenersBefore: readonly number[];
  readonly listenersAfter: readonly number[];
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;
const [port = 0, rounds = 0, jobs = 0] = process.argv.slice(2).map(Number);
const clients = [new Redis(port), new Redis(port)];
const all = clients.map((client) => createLocks({ store: new RedisStore({ client }) }));

function listeners(): number[] {
  return clients.flatMap((client) => client.eventNames().map((name) => client.listenerCount(name)));
}

async function round(): Promise<number> {
  for (let n = 0; n < jobs; n++) {
    const some = [0, 1, 2, 3, 4, 5].map((line) => {
      // Every third gives up, perhaps.
      const options = line % 3 === 0 ? { waitMs: 1 } : {};
      return runInTrace(() => lock.run('key', () => turn(), options), { locks: all[line % 2] }).catch(() => {});
    });
    await Promise.all(some);
  }
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

async function main(): Promise<void> {
  await Promise.all(clients.map((client) => client.ping()));
  const listenersBefore = listeners();
  const sizes: number[] = [];
  for (let n = 0; n < rounds; n++) sizes.push(await round());
  const listenersAfter = listeners();
  for (const locks of all) await locks.close();
  for (const client of clients) client.disconnect();
  const result: LoopResult = { sizes, listenersBefore, listenersAfter };
  process.send?.(result, () => process.disconnect());
}

void main();
