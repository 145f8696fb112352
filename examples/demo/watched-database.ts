import { setTimeout as sleep } from 'node:timers/promises';
import { currentTrace, getLock } from 'reenlock';
import type { Database } from '../orders/database.ts';
import { orderKey } from '../orders/key.ts';
import type { Doing } from './moments.ts';

const stepMs = Number(process.env.STEP_MS ?? 10);

/** Slow enough to be watched; tells which request uses it, and how many holds that has on its order. */
export class WatchedDatabase implements Database {
  readonly #database: Database;
  readonly #note: (traceId: string, doing: Doing, holds: number) => void;

  constructor(database: Database, note: (traceId: string, doing: Doing, holds: number) => void) {
    this.#database = database;
    this.#note = note;
  }

  async read(name: string): Promise<number | undefined> {
    await this.#travel(name);
    return this.#database.read(name);
  }

  async write(name: string, value: number): Promise<void> {
    await this.#travel(name);
    await this.#database.write(name, value);
  }

  names(): Promise<string[]> {
    return this.#database.names();
  }

  async #travel(name: string): Promise<void> {
    const [table, id] = name.split(':') as [string, string];
    this.#note(currentTrace()!.traceId, services[table]!, getLock(orderKey(id)).holdCount());
    await sleep(stepMs);
  }
}

/** Whose table it is. */
const services: Readonly<Record<string, Doing>> = {
  shipped: 'orders',
  stock: 'inventory',
  charged: 'payments',
  settled: 'payments',
};
