import type { Pool, PoolClient } from 'pg';
import { getLock } from 'reenlock';
import { orderKey } from '../orders/key.ts';

export interface Order {
  readonly shipped: number;
  readonly stock: number;
}

/** Shaped like an HTTP error, so that the default error handler of Express responds with 409. */
export class OrderError extends Error {
  readonly status = 409;
  readonly expose = true;
}

/** `fence` is the greatest one that ever wrote to the order. */
export const ordersTable = `
  CREATE TABLE IF NOT EXISTS orders (
    id text PRIMARY KEY,
    shipped int NOT NULL DEFAULT 0,
    stock int NOT NULL DEFAULT 5,
    fence bigint NOT NULL DEFAULT 0
  )`;

/**
 * Claims the order for a fence, and reads it. From here to the end of the transaction the row is this holder's: a newer
 * holder's claim waits for the commit. If a newer one was here before, no row comes back.
 */
const claim = `
  INSERT INTO orders (id, fence) VALUES ($1, $2)
  ON CONFLICT (id) DO UPDATE SET fence = excluded.fence WHERE orders.fence <= excluded.fence
  RETURNING shipped, stock`;

const shipOne = 'UPDATE orders SET shipped = shipped + 1, stock = stock - 1 WHERE id = $1 RETURNING shipped, stock';

export class OrderService {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /**
   * Ships one unit. The lock comes first, then the transaction: a request that waits for the lock keeps no connection. The
   * lock is released after the commit, so that the next holder reads what was written here.
   */
  ship(id: string): Promise<Order> {
    return getLock(orderKey(id)).run((hold) =>
      this.#inTransaction(async (client) => {
        const [order] = (await client.query<Order>(claim, [id, hold.fence])).rows;
        if (order === undefined) throw new OrderError('A newer holder has this order: nothing was shipped');
        if (order.stock === 0) throw new OrderError('Nothing is left to ship');
        const { rows } = await client.query<Order>(shipOne, [id]);
        return rows[0] as Order;
      }),
    );
  }

  /** Reads the order as it was committed last; needs no lock. */
  async view(id: string): Promise<Order | undefined> {
    const { rows } = await this.#pool.query<Order>('SELECT shipped, stock FROM orders WHERE id = $1', [id]);
    return rows[0];
  }

  async #inTransaction<T>(work: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    try {
      await client.query('BEGIN');
      const result = await work(client);
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => undefined); // fails without a connection; the first error says more
      throw error;
    } finally {
      client.release();
    }
  }
}
