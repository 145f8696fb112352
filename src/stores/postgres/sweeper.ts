import type { Clock } from '../../core/base/clock.ts';
import { format } from './sql/schema.ts';
import type { PostgresStatements } from './statements.ts';

const everyMs = 10_000;
const maxRows = 1_000;

/**
 * Removes expired rows from the tables, every few seconds while there are calls. The row of a lock is removed `recordTtlMs` after
 * everything on the lock has expired. No caller waits for it.
 */
export class Sweeper {
  readonly #statements: PostgresStatements;
  readonly #text: string;
  readonly #clock: Clock;
  readonly #recordTtlMs: number;
  #nextMs: number;
  /** Rows that expired before this time on the server's clock are removed. */
  #sweptMs = 0;
  #isSweeping = false;

  constructor(statements: PostgresStatements, schema: string, clock: Clock, recordTtlMs: number) {
    this.#statements = statements;
    this.#text = `SELECT ${schema}.sweep($1, $2, $3, $4)::text`;
    this.#clock = clock;
    this.#recordTtlMs = recordTtlMs;
    this.#nextMs = clock.now().monoMs + everyMs * clock.jitter();
  }

  /** Must be called after each call to the server. Sweeps if it is time. */
  afterCall(): void {
    if (this.#isSweeping || this.#clock.now().monoMs < this.#nextMs) return;
    this.#isSweeping = true;
    // If the server fails, the calls on locks report it.
    this.#sweep()
      .catch(() => {
        this.#nextMs = this.#clock.now().monoMs + everyMs;
      })
      .finally(() => {
        this.#isSweeping = false;
      });
  }

  async #sweep(): Promise<void> {
    const values = (): unknown[] => [format, this.#sweptMs, maxRows, this.#recordTtlMs];
    const [reply] = await this.#statements.run({ operation: 'sweep', text: this.#text, values });
    const [nowMs, hasMore] = JSON.parse(String(reply)) as [number, boolean];
    if (hasMore) return;
    this.#sweptMs = nowMs;
    this.#nextMs = this.#clock.now().monoMs + everyMs * (0.5 + this.#clock.jitter());
  }
}
