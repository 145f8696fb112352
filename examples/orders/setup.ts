import { Redis } from 'ioredis';
import { createLocks, type Locks } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { type Database, MemoryDatabase, RedisDatabase } from './database.ts';
import { InventoryService } from './inventory-service.ts';
import { OrderService } from './order-service.ts';
import { PaymentService } from './payment-service.ts';

export const unitsPerOrder = 5;
export const priceCents = 500;

export interface Services {
  readonly orders: OrderService;
  readonly payments: PaymentService;
}

export interface Shop extends Services {
  readonly locks: Locks;
  close(): Promise<void>;
}

/** In memory, for one process; on Redis, for any number of them, where `REDIS_URL` is set. */
export function openShop(redisUrl: string | undefined = process.env.REDIS_URL): Shop {
  // A client would rather hear soon that an order is busy.
  const waitMs = 2_000;
  if (!redisUrl) {
    const locks = createLocks({ waitMs });
    return { ...createServices(new MemoryDatabase()), locks, close: () => locks.close() };
  }
  const client = new Redis(redisUrl);
  // It connects again by itself; meanwhile guards answer 503.
  client.on('error', ({ message, code }: NodeJS.ErrnoException) => console.error(`Redis: ${message || code}`));
  const locks = createLocks({ store: new RedisStore({ client }), waitMs });
  const close = async (): Promise<void> => {
    // The locks first: what is still held is given back through this client.
    await locks.close();
    client.disconnect();
  };
  return { ...createServices(new RedisDatabase(client)), locks, close };
}

export function createServices(database: Database, units: number = unitsPerOrder): Services {
  const payments = new PaymentService(database, priceCents);
  return { orders: new OrderService(database, new InventoryService(database, units), payments), payments };
}
