import type { Pool, PoolConnection, RowDataPacket } from 'mysql2/promise';
import { getLock } from 'reenlock';
import { orderKey } from '../orders/key.ts';
import { type Order, OrderError } from '../postgres-orders/order-service.ts';

/** `fence` is the greatest one that ever wrote to the order. */
export const ordersTable = `
  CREATE TABLE IF NOT EXISTS orders (
    id varchar(100) PRIMARY KEY,
    shipped int NOT NULL DEFAULT 0,
    stock int NOT NULL DEFAULT 5,
    fence bigint NOT NULL DEFAULT 0
  ) ENGINE = InnoDB`;

const claim = `
  INSERT INTO orders (id, fence) VALUES (?, ?)
  ON DUPLICATE KEY UPDATE fence = GREATEST(fence, VALUES(fence))`;
const read = 'SELECT shipped, stock, fence FROM orders WHERE id = ?';
const shipOne = 'UPDATE orders SET shipped = shipped + 1, stock = stock - 1 WHERE id = ?';

type OrderRow = Order & RowDataPacket & { readonly fence: number };

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
      this.#inTransaction(async (connection) => {
        // From here to the end of the transaction the row is this holder's: a newer holder's claim waits for the commit.
        await connection.query(claim, [id, hold.fence]);
        const [[order]] = await connection.query<OrderRow[]>(read, [id]);
        if (order === undefined || order.fence > hold.fence) {
          throw new OrderError('A newer holder has this order: nothing was shipped');
        }
        if (order.stock === 0) throw new OrderError('Nothing is left to ship');
        await connection.query(shipOne, [id]);
        return { shipped: order.shipped + 1, stock: order.stock - 1 };
      }),
    );
  }

  /** Reads the order as it was committed last; needs no lock. */
  async view(id: string): Promise<Order | undefined> {
    const [[order]] = await this.#pool.query<OrderRow[]>('SELECT shipped, stock FROM orders WHERE id = ?', [id]);
    return order;
  }

  async #inTransaction<T>(work: (connection: PoolConnection) => Promise<T>): Promise<T> {
    const connection = await this.#pool.getConnection();
    try {
      await connection.beginTransaction();
      const result = await work(connection);
      await connection.commit();
      return result;
    } catch (error) {
      // A connection that has failed can't roll back; the server does, once it is closed.
      await connection.rollback().catch(() => connection.destroy());
      throw error;
    } finally {
      connection.release();
    }
  }
}
