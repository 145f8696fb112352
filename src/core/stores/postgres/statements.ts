import { type Clock, pause } from '../../base/clock.ts';
import { isConflict, isOtherIsolation, isRefusal, storeError } from './errors.ts';
import { borrow, inTime, type PostgresPool, type PostgresPoolClient } from './pool.ts';

/** What is to be sent. */
export interface Statement {
  /** What it is for, in the words of an error. */
  readonly operation: string;
  readonly text: string;
  /** Called once there is a connection for it. */
  values(): unknown[];
}

/** So often a call is made that others are in the way of. */
const maxAttempts = 8;
const retryPauseMs = 20;

/**
 * Sends statements over the pool, each in a transaction of its own. A connection is lent for one statement, and closed where
 * that is not answered in time. Rejects with a `LockStoreError`.
 */
export class PostgresStatements {
  readonly #pool: PostgresPool;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  /** Whether transactions of the pool are stricter than the functions can use, which was told by the first that was refused. */
  #isStrict = false;

  constructor(pool: PostgresPool, clock: Clock, timeoutMs: number) {
    this.#pool = pool;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** The first column of each row. */
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
        const isNews = isOtherIsolation(cause) && !isStrict;
        if (attempt === maxAttempts || !(isNews || isConflict(cause))) throw storeError(statement.operation, cause);
        if (isNews) this.#isStrict = true;
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
    // What ends a connection is told to the statement, too; nobody else listens while it is lent.
    client.on('error', ignore);
    let isUsable = false;
    try {
      const sent = isStrict ? strictly(client, text, values) : client.query(text, values);
      const { rows } = await inTime(this.#clock, this.#timeoutMs, sent);
      isUsable = true;
      return rows.map((row) => Object.values(row as object)[0]);
    } catch (error) {
      // Of a transaction that was begun here, nothing is to be left.
      isUsable = isRefusal(error) && !isStrict;
      throw error;
    } finally {
      client.release(!isUsable);
      client.off('error', ignore);
    }
  }
}

/** In a transaction of the level that the functions need. */
async function strictly(
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
