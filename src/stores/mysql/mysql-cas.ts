import { inTime, systemClock } from '../../core/base/clock.ts';
import { LockConfigError } from '../../core/model/errors/mistakes.ts';
import { checkOptions, text } from '../../core/model/validate.ts';
import type { CasAdapter, CasReading } from '../cas/adapter.ts';
import { isConflict, isLeftBehind, LeftBehindError, storeError } from './errors.ts';
import {
  borrow,
  databaseOf,
  type MySqlConnection,
  type MySqlPool,
  type MySqlPromisePool,
  mysqlPool,
  promisePool,
  returnConnection,
} from './pool.ts';

/** The options of a `MySqlCas`. */
export interface MySqlCasOptions {
  /** The application's pool, connected to the primary. It is neither changed nor closed. */
  readonly pool: MySqlPool;
  /**
   * The name of the table, as given to `mysqlCasTable`, with its database if that is not the one in the options of the pool.
   * Default `reenlock_locks`. The database that a connection uses has no effect: the application may change it.
   */
  readonly table?: string | undefined;
}

const defaultTable = 'reenlock_locks';
/** A statement without a reply after this time has failed, and its connection is closed. */
const timeoutMs = 2_000;
/** On how many connections a statement is tried if the state left by their earlier borrowers makes it fail. */
const maxConnections = 3;
/** An earlier borrower may have left a `completion_type`, with which the end of a transaction begins another, or disconnects. */
const alone = 'AND NO CHAIN NO RELEASE';
/** The flags of a connection in each reply to a statement that returns no rows. */
const status = { inTransaction: 1, autocommit: 2 } as const;

/**
 * Returns the SQL that creates the table (default `reenlock_locks`). It may run again, and in several processes at once. The name is in
 * lower case, and may begin with a database. Throws `LockConfigError` for a bad name.
 *
 * @example
 * ```ts
 * import { createPool } from 'mysql2/promise';
 * import { mysqlCasTable } from 'reenlock/mysql';
 *
 * const pool = createPool(process.env.MYSQL_URL ?? 'mysql://root@127.0.0.1:3306/locks');
 * await pool.query(mysqlCasTable());
 * ```
 */
export function mysqlCasTable(table: string = defaultTable): string {
  checkOptions({ table }, tableRules, 'mysqlCasTable');
  return `CREATE TABLE IF NOT EXISTS ${quoted(table)} (
  id varbinary(700) NOT NULL PRIMARY KEY,
  value mediumblob NOT NULL,
  expires_at datetime(3) NOT NULL,
  INDEX (expires_at)
) ENGINE = InnoDB
`;
}

/**
 * Keeps the records in a table of MySQL 8 or of MariaDB 10.6, or newer. Each write is one statement in its own transaction; a
 * read is two. After a statement that adds a row, up to two expired rows are removed: the table needs no other cleaning. Throws
 * `LockConfigError` for bad options. Its calls reject with `LockStoreError`.
 *
 * @example
 * ```ts
 * import { createPool } from 'mysql2/promise';
 * import { configureLocks } from 'reenlock';
 * import { CasStore, MySqlCas } from 'reenlock/mysql';
 *
 * const pool = createPool(process.env.MYSQL_URL ?? 'mysql://root@127.0.0.1:3306/locks');
 * configureLocks({ store: new CasStore({ adapter: new MySqlCas({ pool }) }), pollMs: 100 });
 * ```
 */
export class MySqlCas implements CasAdapter {
  readonly #pool: MySqlPromisePool;
  readonly #sql: ReturnType<typeof statements>;

  constructor(options: MySqlCasOptions) {
    const { pool, table = defaultTable } = checkOptions(options, rules, 'MySqlCas', 'pool');
    this.#pool = promisePool(pool);
    this.#sql = statements(withDatabase(table, pool));
  }

  read(key: string): Promise<CasReading> {
    return this.#run(async (connection) => {
      // In an earlier borrower's open transaction, a read would not see later writes.
      await endTransaction(connection);
      const [[nowUs, value]] = (await send(connection, this.#sql.read, [bytes(key)])) as [[unknown, Buffer | null]];
      return { value: value?.toString(), nowUs: Number(nowUs) };
    });
  }

  async create(key: string, value: string, ttlMs: number): Promise<boolean> {
    const isNew = await this.#write('create', [bytes(key), bytes(value), ttlMs * 1_000]);
    // The row is written. A later statement removes the expired rows.
    if (isNew) await this.#run((connection) => this.#sweep(connection)).catch(() => {});
    return isNew;
  }

  replace(key: string, old: string, value: string, ttlMs: number): Promise<boolean> {
    return this.#write('replace', [bytes(value), ttlMs * 1_000, bytes(key), bytes(old)]);
  }

  remove(key: string, old: string): Promise<boolean> {
    return this.#write('remove', [bytes(key), bytes(old)]);
  }

  /** Returns whether a row was written; false if another transaction was faster. */
  #write(operation: Operation, values: unknown[]): Promise<boolean> {
    return this.#run(async (connection) => {
      try {
        const reply = (await send(connection, this.#sql[operation], values)) as Reply;
        // An open transaction belongs to an earlier borrower: a write in it may still be rolled back.
        if ((reply.serverStatus & status.inTransaction) !== 0) throw new LeftBehindError(hasAutocommit(reply));
        return reply.affectedRows === 1;
      } catch (error) {
        if (!isConflict(error)) throw error;
        // In an earlier borrower's transaction, the failed statement would keep its row locks.
        await endTransaction(connection);
        return false;
      }
    });
  }

  /** Removes two expired rows. Waits for no other transaction: one that has locked a row is about to use it. */
  async #sweep(connection: MySqlConnection): Promise<void> {
    await endTransaction(connection);
    const found = (await send(connection, this.#sql.expired)) as unknown[];
    if (found.length === 0) return;
    await send(connection, 'START TRANSACTION');
    const locked = (await send(connection, `${this.#sql.expired} FOR UPDATE SKIP LOCKED`)) as [Buffer][];
    for (const [id] of locked) await send(connection, this.#sql.drop, [id]);
    await send(connection, `COMMIT ${alone}`);
  }

  /**
   * Runs statements on a borrowed connection. Only a result returns it to the pool; anything else closes it, which rolls back
   * its open transaction.
   */
  async #run<T>(run: (connection: MySqlConnection) => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const connection = await borrow(this.#pool, systemClock, timeoutMs).catch((cause: unknown) => {
        throw storeError(cause, false);
      });
      let isUsable = false;
      try {
        const result = await inTime(systemClock, timeoutMs, run(connection));
        isUsable = true;
        return result;
      } catch (cause) {
        if (!isLeftBehind(cause) || attempt >= maxConnections) throw storeError(cause, true);
      } finally {
        returnConnection(connection, isUsable);
      }
    }
  }
}

/** The server's reply to a statement that returns no rows. */
interface Reply {
  readonly affectedRows: number;
  readonly serverStatus: number;
}

/** Resolves with the rows of a statement, as arrays, or with the server's reply. */
async function send(connection: MySqlConnection, sql: string, values: readonly unknown[] = []): Promise<unknown> {
  const form = { rowsAsArray: true, typeCast: true, nestTables: false, namedPlaceholders: false } as const;
  const [result] = await connection.query({ sql, values, ...form });
  return result;
}

/** Rolls back an earlier borrower's open transaction. Throws if every statement would begin another transaction. */
async function endTransaction(connection: MySqlConnection): Promise<void> {
  const reply = (await send(connection, `ROLLBACK ${alone}`)) as Reply;
  if (!hasAutocommit(reply)) throw new LeftBehindError(false);
}

function hasAutocommit({ serverStatus }: Reply): boolean {
  return (serverStatus & status.autocommit) !== 0;
}

/** Texts are sent and kept as bytes: no character set, collation or SQL mode of a connection changes them. */
function bytes(text: string): Buffer {
  return Buffer.from(text);
}

const tableRules = {
  table: text(/^[a-z_][a-z0-9_]{0,40}(\.[a-z_][a-z0-9_]{0,40})?$/, 'the name of a table, in lower case'),
};

const rules = { pool: mysqlPool, ...tableRules };

function withDatabase(table: string, pool: MySqlPool): string {
  if (table.includes('.')) return quoted(table);
  const database = databaseOf(pool);
  if (database !== undefined) return `\`${database.replaceAll('`', '``')}\`.${quoted(table)}`;
  throw new LockConfigError(
    'Expected `pool` to have a database in its options, or `table` to begin with one, got neither: name it in `table`',
  );
}

function quoted(table: string): string {
  return table
    .split('.')
    .map((part) => `\`${part}\``)
    .join('.');
}

type Operation = 'create' | 'replace' | 'remove';

function statements(table: string): Readonly<Record<Operation | 'read' | 'expired' | 'drop', string>> {
  // UTC, because the local time of a session goes back once a year.
  const now = 'UTC_TIMESTAMP(3)';
  const until = `${now} + INTERVAL ? MICROSECOND`;
  return {
    read: `SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), value
FROM (SELECT 1) AS one LEFT JOIN ${table} ON id = ?`,
    create: `INSERT INTO ${table} (id, value, expires_at) VALUES (?, ?, ${until})`,
    replace: `UPDATE ${table} SET value = ?, expires_at = ${until} WHERE id = ? AND value = ?`,
    remove: `DELETE FROM ${table} WHERE id = ? AND value = ?`,
    expired: `SELECT id FROM ${table} WHERE expires_at < ${now} ORDER BY expires_at LIMIT 2`,
    drop: `DELETE FROM ${table} WHERE id = ?`,
  };
}
