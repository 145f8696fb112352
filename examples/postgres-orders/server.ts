import { Pool } from 'pg';
import { createLocks } from 'reenlock';
import { closeServer } from 'reenlock/express';
import { PostgresStore } from 'reenlock/postgres';
import { listen } from '../orders/listen.ts';
import { createApp } from './app.ts';
import { OrderService, ordersTable } from './order-service.ts';

/** Orders and their locks in one database, and no other server. */
async function main(): Promise<void> {
  const pool = new Pool({ connectionString: process.env.DATABASE_URL });
  // PostgreSQL may end a connection, in use or idle. Without both listeners that ends the process.
  const report = ({ message }: Error): void => console.error(`PostgreSQL: ${message}`);
  pool.on('error', report).on('connect', (client) => client.on('error', report));
  const store = new PostgresStore({ pool });
  await store.migrate();
  // Several servers may start at the same time. The two statements are one transaction, and one server makes the table.
  await pool.query(`SELECT pg_advisory_xact_lock(42); ${ordersTable}`);
  const locks = createLocks({ store, waitMs: 5_000 });
  const server = await listen(createApp(new OrderService(pool), locks));
  const stop = async (): Promise<void> => {
    await closeServer(server, locks, { drainMs: 5_000 });
    await pool.end();
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

void main();
