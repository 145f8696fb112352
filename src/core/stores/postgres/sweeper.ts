import type { Clock } from '../../base/clock.ts';
import { format } from './sql/schema.ts';
import type { PostgresStatements } from './statements.ts';

const everyMs = 10_000;
const mostRows = 1_000;

/** Has what is over removed from the tables, now and then, while there are calls. Nobody waits for it. */
export class Sweeper {
  readonly #statements: PostgresStatements;
  readonly #text: string;
  readonly #clock: Clock;
  #nextMs: number;
  /** Until when everything is removed, on the server's clock. */
  #sweptMs = 0;
  #isSweeping = false;

  constructor(statements: PostgresStatements, schema: string, clock: Clock) {
    this.#statements = statements;
    this.#text = `SELECT ${schema}.sweep($1, $2, $3)::text`;
    this.#clock = clock;
    this.#nextMs = clock.now().monoMs + everyMs * clock.jitter();
  }

  /** To be called after each call. */
  called(): void {
    if (this.#isSweeping || this.#clock.now().monoMs < this.#nextMs) return;
    this.#isSweeping = true;
    // What is wrong with the server, the calls themselves will tell.
    this.#sweep()
      .catch(() => {
        this.#nextMs = this.#clock.now().monoMs + everyMs;
      })
      .finally(() => {
        this.#isSweeping = false;
      });
  }

  async #sweep(): Promise<void> {
    const values = (): unknown[] => [format, this.#sweptMs, mostRows];
    const [reply] = await this.#statements.run({ operation: 'sweep', text: this.#text, values });
    const [nowMs, hasMore] = JSON.parse(String(reply)) as [number, boolean];
    if (hasMore) return;
    this.#sweptMs = nowMs;
    this.#nextMs = this.#clock.now().monoMs + everyMs * (0.5 + this.#clock.jitter());
  }
}
