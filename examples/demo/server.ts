import { once } from 'node:events';
import { Redis } from 'ioredis';
import { createLocks, type Locks } from 'reenlock';
import { closeServer } from 'reenlock/express';
import { RedisStore } from 'reenlock/redis';
import { createApp } from '../express-orders/app.ts';
import { type Database, MemoryDatabase, RedisDatabase } from '../orders/database.ts';
import { listen, portOf } from '../orders/listen.ts';
import { createServices } from '../orders/setup.ts';
import { type Doing, type Moment, type Variant, variants } from './moments.ts';
import { OpenStore } from './open-store.ts';
import { WatchedDatabase } from './watched-database.ts';

/** A server process of the demonstration: sends its ports, serves until it gets a message, and sends what it saw. */
async function main(units: number, run: string): Promise<void> {
  // With its parent gone, nobody waits for what it saw.
  process.once('disconnect', () => process.exit());
  const client = await connect(process.env.REDIS_URL);
  const moments: Moment[] = [];
  const hashOf = (variant: Variant): string => `${run}:${variant}`;
  const running = await Promise.all(
    variants.map(async (variant) => {
      const locks = createLocks({ store: storeOf(variant, client, run) });
      const watched = new WatchedDatabase(databaseOf(client, hashOf(variant)), watch(locks, variant, moments));
      const server = await listen(createApp(createServices(watched, units).orders, locks));
      return { variant, server, locks };
    }),
  );
  process.send?.(Object.fromEntries(running.map(({ variant, server }) => [variant, portOf(server)])));

  await once(process, 'message');
  await Promise.all(running.map(({ server, locks }) => closeServer(server, locks, { drainMs: 1_000 })));
  await client?.del(variants.map(hashOf));
  process.send?.(moments, () => process.disconnect());
}

/** Writes down what happens, and answers the function that others tell of it, too. */
function watch(locks: Locks, variant: Variant, moments: Moment[]) {
  const note = (traceId: string, doing: Doing, holds: number): void => {
    moments.push({ variant, traceId, doing, holds, atMs: performance.timeOrigin + performance.now() });
  };
  locks.on('waiting', ({ owner }) => note(owner, 'wait', 0));
  locks.on('granted', ({ owner }) => note(owner, 'hold', 1));
  locks.on('released', ({ owner }) => note(owner, 'leave', 0));
  return note;
}

async function connect(url: string | undefined): Promise<Redis | undefined> {
  if (!url) return undefined;
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  let cause: NodeJS.ErrnoException | undefined;
  client.on('error', (error: NodeJS.ErrnoException) => {
    cause = error;
  });
  // At the start or later: what requests are answered without it says nothing about locks.
  client.once('end', () => {
    console.error(
      `No Redis server answers at REDIS_URL: ${cause?.message || cause?.code || 'it closed the connection'}`,
    );
    process.exit(1);
  });
  await client.connect();
  return client;
}

function storeOf(variant: Variant, client: Redis | undefined, run: string) {
  if (variant === 'open') return new OpenStore();
  return client && new RedisStore({ client, prefix: `${run}:` });
}

function databaseOf(client: Redis | undefined, hash: string): Database {
  return client ? new RedisDatabase(client, hash) : new MemoryDatabase();
}

void main(Number(process.argv[2]), process.argv[3]!);
