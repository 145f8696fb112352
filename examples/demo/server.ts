import { once } from 'node:events';
import { Redis } from 'ioredis';
import { createLocks, type LockStore, type Locks, MemoryStore } from 'reenlock';
import { closeServer } from 'reenlock/express';
import { RedisStore } from 'reenlock/redis';
import { createApp } from '../express-orders/app.ts';
import { type Database, MemoryDatabase, RedisDatabase } from '../orders/database.ts';
import { InventoryService } from '../orders/inventory-service.ts';
import { listen, portOf } from '../orders/listen.ts';
import { OrderService } from '../orders/order-service.ts';
import { PaymentService } from '../orders/payment-service.ts';
import { priceCents } from '../orders/setup.ts';
import { type Doing, type Moment, type Variant, variants } from './moments.ts';
import { OpenStore } from './open-store.ts';
import { createPaymentsApp, RemotePayments } from './payments.ts';
import { WatchedDatabase } from './watched-database.ts';

/**
 * A server process of the demonstration, with an order service and a payment service: sends the ports of the first,
 * serves until it gets a message, and sends what it saw.
 */
async function main(units: number, run: string): Promise<void> {
  // With its parent gone, nobody waits for what it saw.
  process.once('disconnect', () => process.exit());
  const client = await connect(process.env.REDIS_URL);
  const moments: Moment[] = [];
  const hashOf = (variant: Variant): string => `${run}:${variant}`;
  const running = await Promise.all(
    variants.map(async (variant) => {
      const store = storeOf(variant, client, run);
      const [locks, paymentLocks] = [createLocks({ store }), createLocks({ store })];
      const note = watch(locks, variant, moments);
      paymentLocks.on('entered', ({ traceId }) => note(traceId, 'enter', 0));
      const watched = new WatchedDatabase(databaseOf(client, hashOf(variant)), note);
      const payments = new PaymentService(watched, priceCents);
      const paymentServer = await listen(createPaymentsApp(payments, paymentLocks));
      const remote = new RemotePayments(watched, `http://127.0.0.1:${portOf(paymentServer)}`);
      const orders = new OrderService(watched, new InventoryService(watched, units), remote);
      const server = await listen(createApp(orders, locks));
      const close = async (): Promise<void> => {
        await closeServer(server, locks, { drainMs: 1_000 });
        await closeServer(paymentServer, paymentLocks, { drainMs: 1_000 });
      };
      return { variant, server, close };
    }),
  );
  process.send?.(Object.fromEntries(running.map(({ variant, server }) => [variant, portOf(server)])));

  await once(process, 'message');
  await Promise.all(running.map(({ close }) => close()));
  await client?.del(variants.map(hashOf));
  process.send?.(moments, () => process.disconnect());
}

/** Writes down what happens, and answers the function that others tell of it, too. */
function watch(locks: Locks, variant: Variant, moments: Moment[]) {
  const note = (traceId: string, doing: Doing, holds: number): void => {
    moments.push({ variant, traceId, doing, holds, atMs: performance.timeOrigin + performance.now() });
  };
  locks.on('waiting', ({ traceId }) => note(traceId, 'wait', 0));
  locks.on('granted', ({ traceId }) => note(traceId, 'hold', 1));
  locks.on('released', ({ traceId }) => note(traceId, 'leave', 0));
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

function storeOf(variant: Variant, client: Redis | undefined, run: string): LockStore {
  if (variant === 'open') return new OpenStore();
  return client === undefined ? new MemoryStore() : new RedisStore({ client, prefix: `${run}:` });
}

function databaseOf(client: Redis | undefined, hash: string): Database {
  return client ? new RedisDatabase(client, hash) : new MemoryDatabase();
}

void main(Number(process.argv[2]), process.argv[3]!);
