import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool } from 'pg';
import { lock } from '../../../src/core/index.ts';
import type { Recorder } from '../recorder.ts';
import { seeded } from '../seed.ts';
import { poolAt } from './open-store.ts';

/** Where to count, under which keys, and how many jobs do so at once. */
export interface Counting {
  readonly port: number;
  readonly keys: readonly string[];
  readonly lines: number;
  readonly seed: number;
}

/** How many the database has confirmed, by key, and how many more it may have counted without a reply. */
export interface Counted {
  readonly confirmed: Readonly<Record<string, number>>;
  readonly unclear: Readonly<Record<string, number>>;
}

/** The SQL of a table with one number for each key. */
export const counterTable =
  'CREATE TABLE counters (key text PRIMARY KEY, n bigint NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0)';

/**
 * Adds one to a number in a database, again and again, as code below a lock does: it reads, re-enters the lock, works, and
 * writes, and the database compares the fence each time.
 */
export class Counter {
  readonly #recorder: Recorder;
  readonly #process: string;
  readonly #pool: Pool;
  readonly #lines: Promise<unknown>;
  readonly #counted = { confirmed: {} as Record<string, number>, unclear: {} as Record<string, number> };
  #jobs = 0;
  #isOver = false;

  constructor(recorder: Recorder, process: string, { port, keys, lines, seed }: Counting) {
    this.#recorder = recorder;
    this.#process = process;
    this.#pool = poolAt(port);
    const random = seeded(seed);
    this.#lines = Promise.all(
      Array.from({ length: lines }, async () => {
        while (!this.#isOver) {
          const key = keys[Math.floor(random() * keys.length)] as string;
          // What was refused or lost is in the history: the next one may fare better.
          await this.#job(key, random() * 4).catch(() => sleep(20));
        }
      }),
    );
  }

  async stop(): Promise<Counted> {
    this.#isOver = true;
    await this.#lines;
    await this.#pool.end();
    return this.#counted;
  }

  async #job(key: string, workMs: number): Promise<void> {
    this.#jobs += 1;
    await this.#recorder.job(`${this.#process}.${this.#jobs}`, async (worker) => {
      const leave = await worker.acquire(key);
      try {
        // The same job is in at once, with the same fence.
        const again = await lock.acquire(key);
        await this.#add(key, again.fence, workMs);
        await again.release();
      } finally {
        await leave();
      }
    });
  }

  async #add(key: string, fence: number, workMs: number): Promise<void> {
    const claim = 'UPDATE counters SET fence = $2 WHERE key = $1 AND fence <= $2 RETURNING n';
    const [row] = (await this.#pool.query<{ n: string }>(claim, [key, fence])).rows;
    if (row === undefined) return;
    await sleep(workMs);
    const write = 'UPDATE counters SET n = $3 WHERE key = $1 AND fence = $2 RETURNING n';
    try {
      const { rows } = await this.#pool.query(write, [key, fence, Number(row.n) + 1]);
      if (rows.length === 1) this.#note('confirmed', key);
    } catch (error) {
      this.#note('unclear', key);
      throw error;
    }
  }

  #note(what: keyof Counted, key: string): void {
    this.#counted[what][key] = (this.#counted[what][key] ?? 0) + 1;
  }
}
