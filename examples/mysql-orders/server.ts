import { createPool } from 'mysql2/promise';
import { createLocks } from 'reenlock';
import { closeServer } from 'reenlock/express';
import { CasStore, MySqlCas, mysqlCasTable } from 'reenlock/mysql';
import { listen } from '../orders/listen.ts';
import { createApp } from '../postgres-orders/app.ts';
import { OrderService, ordersTable } from './order-service.ts';

/** Orders and their locks in one database, and no other server. */
async function main(): Promise<void> {
  const pool = createPool(process.env.MYSQL_URL ?? 'mysql://root@127.0.0.1:3306/locks');
  // Several servers may start at the same time: MySQL makes each table once.
  for (const table of [mysqlCasTable(), ordersTable]) await pool.query(table);
  const store = new CasStore({ adapter: new MySqlCas({ pool }) });
  // A waiter in another process finds out by a poll that it holds the lock.
  const locks = createLocks({ store, waitMs: 5_000, pollMs: 100 });
  const server = await listen(createApp(new OrderService(pool), locks));
  const stop = async (): Promise<void> => {
    await closeServer(server, locks, { drainMs: 5_000 });
    await pool.end();
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
}

void main();
