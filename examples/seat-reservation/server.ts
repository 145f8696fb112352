import { Redis } from 'ioredis';
import { createLocks, MemoryStore } from 'reenlock';
import { closeServer } from 'reenlock/express';
import { RedisStore } from 'reenlock/redis';
import { MemoryDatabase, RedisDatabase } from '../orders/database.ts';
import { listen } from '../orders/listen.ts';
import { createApp } from './app.ts';

/** In memory, for one process; on Redis, for any number of them, if `REDIS_URL` is set. */
async function main(): Promise<void> {
  const client = process.env.REDIS_URL ? new Redis(process.env.REDIS_URL) : undefined;
  client?.on('error', ({ message }) => console.error(`Redis: ${message}`));
  const locks = createLocks({ store: client === undefined ? new MemoryStore() : new RedisStore({ client }) });
  const database = client === undefined ? new MemoryDatabase() : new RedisDatabase(client, 'seats');
  const server = await listen(createApp(database, locks, Number(process.env.RESERVED_MS ?? 600_000)));
  const stop = async (): Promise<void> => {
    // Reservations stay: they belong to no process.
    await closeServer(server, locks, { drainMs: 5_000 });
    client?.disconnect();
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

void main();
