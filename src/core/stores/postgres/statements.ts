import { type Clock, pause } from '../../base/clock.ts';
import { isConflict, isOtherIsolation, isRefusal, storeError } from './errors.ts';
import { borrow, inTime, type PostgresPool, type PostgresPoolClient } from './pool.ts';

/** One statement to send. */
export interface Statement {
  /** The operation that errors name. */
  readonly operation: string;
  readonly text: string;
  /** Returns its values. Called once, when there is a connection. */
  values(): unknown[];
}

/** How often a statement is sent if it conflicts with other transactions. */
const maxAttempts = 8;
const retryPauseMs = 20;

/**
 * Sends statements through the pool, each in a transaction of its own. A connection is borrowed for one statement, and closed
 * if no reply comes in time. Rejects with a `LockStoreError`.
 */
export class PostgresStatements {
  readonly #pool: PostgresPool;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  /** Whether the default isolation level is stricter than the SQL functions allow. The first refused statement shows it. */
  #isStrict = false;

  constructor(pool: PostgresPool, clock: Clock, timeoutMs: number) {
    this.#pool = pool;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** Resolves with the first column of each row. */
  async run(statement: Statement): Promise<readonly unknown[]> {
    let values: unknown[] | undefined;
    for (let attempt = 1; ; attempt++) {
      const client = await borrow(this.#pool, this.#clock, this.#timeoutMs).catch((cause: unknown) => {
        throw storeError(statement.operation, cause, false);
      });
      values ??= statement.values();
      const isStrict = this.#isStrict;
      try {
        return await this.#send(client, isStrict, statement.text, values);
      } catch (cause) {
        const isFirstRefusal = isOtherIsolation(cause) && !isStrict;
        if (attempt === maxAttempts || !(isFirstRefusal || isConflict(cause)))
          throw storeError(statement.operation, cause);
        if (isFirstRefusal) this.#isStrict = true;
        else await pause(this.#clock, attempt * retryPauseMs * this.#clock.jitter());
      }
    }
  }

  async #send(
    client: PostgresPoolClient,
    isStrict: boolean,
    text: string,
    values: unknown[],
  ): Promise<readonly unknown[]> {
    // If the connection fails, the statement rejects as well; without a listener the event would end the process.
    client.on('error', ignore);
    let isUsable = false;
    try {
      const sent = isStrict ? inReadCommitted(client, text, values) : client.query(text, values);
      const { rows } = await inTime(this.#clock, this.#timeoutMs, sent);
      isUsable = true;
      return rows.map((row) => Object.values(row as object)[0]);
    } catch (error) {
      // A transaction that was begun here may still be open: then the connection must not be used again.
      isUsable = isRefusal(error) && !isStrict;
      throw error;
    } finally {
      client.release(!isUsable);
      client.off('error', ignore);
    }
  }
}

/** Sends a statement in a transaction of the isolation level that the SQL functions need. */
async function inReadCommitted(
  client: PostgresPoolClient,
  text: string,
  values: unknown[],
): ReturnType<PostgresPoolClient['query']> {
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  const result = await client.query(text, values);
  await client.query('COMMIT');
  return result;
}

function ignore(): void {}
