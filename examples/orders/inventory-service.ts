import { getLock } from 'reenlock';
import type { Database } from './database.ts';
import { orderKey } from './key.ts';

/** Shaped like an HTTP error, so that the default error handlers of Express and Koa answer 409. */
export class OutOfStockError extends Error {
  readonly status = 409;
  readonly expose = true;

  constructor() {
    super('Nothing is left to ship');
  }
}

/** The units that are set aside for each order. */
export class InventoryService {
  readonly #database: Database;
  readonly #unitsPerOrder: number;

  constructor(database: Database, unitsPerOrder: number) {
    this.#database = database;
    this.#unitsPerOrder = unitsPerOrder;
  }

  async stock(id: string): Promise<number> {
    return (await this.#database.read(`stock:${id}`)) ?? this.#unitsPerOrder;
  }

  /** Takes one unit and answers how many are left. Rejects with `OutOfStockError`. */
  take(id: string): Promise<number> {
    return getLock(orderKey(id)).run(async () => {
      const stock = await this.stock(id);
      if (stock === 0) throw new OutOfStockError();
      await this.#database.write(`stock:${id}`, stock - 1);
      return stock - 1;
    });
  }
}
