import { type Clock, inTime, pause } from '../../core/base/clock.ts';
import { isAboutLock, isConflict, isLeftBehind, isOtherIsolation, OpenTransactionError, storeError } from './errors.ts';
import {
  askIfIdle,
  borrow,
  isInTransaction,
  type PostgresPool,
  type PostgresPoolClient,
  type PostgresResult,
  returnConnection,
} from './pool.ts';

/** One statement to send. */
export interface Statement {
  /** The operation, for errors. */
  readonly operation: string;
  readonly text: string;
  /** Returns its values. Called once, when there is a connection. */
  values(): unknown[];
}

/** How often a statement is sent if it conflicts with other transactions. */
const maxAttempts = 8;
/** On how many connections a statement is tried if the state left by their earlier borrowers makes it fail. */
const maxConnections = 3;
const retryPauseMs = 20;

/**
 * Sends statements through the pool, each in its own transaction on a borrowed connection. Only a reply, or a refusal that is not
 * about the connection, returns it to the pool; anything else closes it. Rejects with a `LockStoreError`.
 */
export class PostgresStatements {
  readonly #pool: PostgresPool;
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #whenMissing: string | undefined;
  /** Whether the default isolation level is stricter than the SQL functions allow. The first refused statement shows it. */
  #isStrict = false;

  /** `whenMissing`: the message of the error if a table is missing. Default: that of a `PostgresStore`. */
  constructor(pool: PostgresPool, clock: Clock, timeoutMs: number, whenMissing?: string) {
    this.#pool = pool;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
    this.#whenMissing = whenMissing;
  }

  /** Resolves with the first column of each row. Repeats a statement that has certainly had no effect, or may be repeated. */
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
        if (isFirstRefusal) this.#isStrict = true;
        else if (isConflict(cause) && attempt < maxAttempts)
          await pause(this.#clock, attempt * retryPauseMs * this.#clock.jitter());
        else if (!isLeftBehind(cause) || attempt >= maxConnections)
          throw storeError(statement.operation, cause, true, this.#whenMissing);
      }
    }
  }

  async #send(
    client: PostgresPoolClient,
    isStrict: boolean,
    text: string,
    values: unknown[],
  ): Promise<readonly unknown[]> {
    let isUsable = false;
    try {
      const sent = isStrict ? inReadCommitted(client, text, values) : alone(client, text, values);
      const { rows } = await inTime(this.#clock, this.#timeoutMs, sent);
      isUsable = true;
      return rows.map((row) => Object.values(row as object)[0]);
    } catch (error) {
      // A transaction that was begun here may still be open: then the connection must not be used again.
      isUsable = isAboutLock(error) && !isStrict;
      throw error;
    } finally {
      returnConnection(client, isUsable);
    }
  }
}

/**
 * Sends a statement without a transaction around it. If a `BEGIN` of an earlier borrower was still in flight, the statement is
 * in that transaction, and is rolled back when the connection is closed.
 */
async function alone(client: PostgresPoolClient, text: string, values: unknown[]): Promise<PostgresResult> {
  try {
    const result = await client.query(text, values);
    if (!isInTransaction(client)) return result;
  } catch (error) {
    if (!isInTransaction(client)) throw error;
  }
  throw new OpenTransactionError();
}

/** Sends a statement in a transaction of the isolation level that the SQL functions need. */
async function inReadCommitted(client: PostgresPoolClient, text: string, values: unknown[]): Promise<PostgresResult> {
  // A `BEGIN` in another transaction only warns, and the `COMMIT` would end that one.
  if (!(await askIfIdle(client))) throw new OpenTransactionError();
  await client.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  const result = await client.query(text, values);
  await client.query('COMMIT');
  return result;
}
