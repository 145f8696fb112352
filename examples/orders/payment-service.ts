import { type AcquireOptions, getLock } from 'reenlock';
import type { Database } from './database.ts';
import { orderKey } from './key.ts';

/** What was charged for each order, and how much of it is settled already. In cents. */
export class PaymentService {
  readonly #database: Database;
  readonly #priceCents: number;

  constructor(database: Database, priceCents: number) {
    this.#database = database;
    this.#priceCents = priceCents;
  }

  async charged(id: string): Promise<number> {
    return (await this.#database.read(`charged:${id}`)) ?? 0;
  }

  async settled(id: string): Promise<number> {
    return (await this.#database.read(`settled:${id}`)) ?? 0;
  }

  /** The orders that were ever charged. */
  async orders(): Promise<string[]> {
    const names = await this.#database.names();
    return names.filter((name) => name.startsWith('charged:')).map((name) => name.slice('charged:'.length));
  }

  /** Charges one unit and answers what is charged by now. */
  charge(id: string): Promise<number> {
    return getLock(orderKey(id)).run(async () => {
      const charged = (await this.charged(id)) + this.#priceCents;
      await this.#database.write(`charged:${id}`, charged);
      return charged;
    });
  }

  /** Moves what is charged to what is settled, and answers how much that was. */
  settle(id: string, options?: AcquireOptions): Promise<number> {
    return getLock(orderKey(id)).run(async () => {
      const charged = await this.charged(id);
      if (charged === 0) return 0;
      await this.#database.write(`settled:${id}`, (await this.settled(id)) + charged);
      await this.#database.write(`charged:${id}`, 0);
      return charged;
    }, options);
  }
}
