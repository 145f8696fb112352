import type { RequestListener } from 'node:http';
import { Redis } from 'ioredis';
import { configureLocks } from 'reenlock';
import { closeServer } from 'reenlock/express';
import { RedisStore } from 'reenlock/redis';
import { listen } from '../orders/listen.ts';

/** What the service needs from its environment. Throws, naming what is missing. */
export function needed(name: 'REDIS_URL' | 'ORDERS_URL' | 'PAYMENTS_URL' | 'BANK_URL'): string {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set. Both services, a bank and a Redis: npx tsx examples/two-services/run.ts`);
}

/** Serves until SIGTERM or Ctrl-C. Both services lock in one Redis; each says what its requests hold and wait for. */
export async function serve(app: RequestListener): Promise<void> {
  const client = new Redis(needed('REDIS_URL'));
  // It connects again by itself; meanwhile guards answer 503.
  client.on('error', ({ message, code }: NodeJS.ErrnoException) => console.error(`Redis: ${message || code}`));
  const locks = configureLocks({
    store: new RedisStore({ client }),
    // What a crashed service leaves behind is held for as long as this.
    leaseMs: Number(process.env.LEASE_MS ?? 10_000),
    pollMs: Number(process.env.POLL_MS ?? 1_000),
  });
  locks.on('waiting', ({ traceId, key }) => console.log(`${traceId} waits for ${key}`));
  locks.on('granted', ({ traceId, key, fence }) => console.log(`${traceId} holds ${key}, fence ${fence}`));
  locks.on('released', ({ traceId, key }) => console.log(`${traceId} gives ${key} back`));
  const server = await listen(app);
  const stop = async (): Promise<void> => {
    await closeServer(server, locks, { drainMs: 1_000 });
    client.disconnect();
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}
