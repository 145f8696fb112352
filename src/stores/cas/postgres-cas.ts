import { systemClock } from '../../core/base/clock.ts';
import { checkOptions, text } from '../../core/model/validate.ts';
import { type PostgresPool, pgPool } from '../postgres/pool.ts';
import { PostgresStatements } from '../postgres/statements.ts';
import type { CasAdapter, CasReading } from './adapter.ts';

/** The options of a `PostgresCas`. */
export interface PostgresCasOptions {
  /** The application's pool, connected to the primary. It is neither changed nor closed. */
  readonly pool: PostgresPool;
  /**
   * The name of the table, as given to `postgresCasTable`, with its schema if that is not `public`. Default
   * `reenlock_locks`. The search path of a connection is not used: the application may change it.
   */
  readonly table?: string | undefined;
}

const defaultTable = 'reenlock_locks';
/** A statement without a reply after this time has failed, and its connection is closed. */
const timeoutMs = 2_000;

/**
 * Returns the SQL that creates the table (default `reenlock_locks`). It may run again. The name is in lower case, and may begin with a
 * schema; without one, the schema is `public`. Throws `LockConfigError` for a bad name.
 *
 * @example
 * ```ts
 * import { Pool } from 'pg';
 * import { postgresCasTable } from 'reenlock/redis';
 *
 * const pool = new Pool({ connectionString: process.env.DATABASE_URL });
 * await pool.query(postgresCasTable());
 * ```
 */
export function postgresCasTable(table: string = defaultTable): string {
  checkOptions({ table }, tableRules, 'postgresCasTable');
  // It is in the schema of its table. A longer name would be cut, and might then equal that of another index.
  const index = `${table.slice(table.indexOf('.') + 1)}_expires_at`;
  const name = withSchema(table);
  return `CREATE TABLE IF NOT EXISTS ${name} (
  key text PRIMARY KEY,
  value text NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS ${index} ON ${name} (expires_at);
`;
}

/**
 * Keeps the records in a table of PostgreSQL, 12 or newer. Each operation is one statement. A statement that adds a row also
 * removes up to two expired rows, so the table needs no other cleaning. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import { Pool } from 'pg';
 * import { configureLocks } from 'reenlock';
 * import { CasStore, PostgresCas } from 'reenlock/redis';
 *
 * const pool = new Pool({ connectionString: process.env.DATABASE_URL });
 * configureLocks({ store: new CasStore({ adapter: new PostgresCas({ pool }) }), pollMs: 100 });
 * ```
 */
export class PostgresCas implements CasAdapter {
  readonly #statements: PostgresStatements;
  readonly #sql: ReturnType<typeof statements>;

  constructor(options: PostgresCasOptions) {
    const { pool, table = defaultTable } = checkOptions(options, rules, 'PostgresCas', 'pool');
    this.#statements = new PostgresStatements(pool, systemClock, timeoutMs, missingTable);
    this.#sql = statements(withSchema(table));
  }

  async read(key: string): Promise<CasReading> {
    const [reply] = await this.#run('read', [key]);
    const [, nowUs, value] = /^(\d+)(?: (.*))?$/s.exec((reply as Buffer).toString()) as RegExpExecArray;
    return { value, nowUs: Number(nowUs) };
  }

  create(key: string, value: string, ttlMs: number): Promise<boolean> {
    return this.#write('create', [key, value], ttlMs);
  }

  replace(key: string, old: string, value: string, ttlMs: number): Promise<boolean> {
    return this.#write('replace', [key, old, value], ttlMs);
  }

  remove(key: string, old: string): Promise<boolean> {
    return this.#write('remove', [key, old]);
  }

  /** A statement returns a row if it has written. */
  async #write(operation: Operation, texts: readonly string[], ...numbers: number[]): Promise<boolean> {
    return (await this.#run(operation, texts, ...numbers)).length === 1;
  }

  /** Sends texts as bytes: they are then the same in any encoding that an application has set on the connection. */
  #run(operation: Operation, texts: readonly string[], ...numbers: number[]): Promise<readonly unknown[]> {
    const values = (): unknown[] => [...texts.map((each) => Buffer.from(each)), ...numbers];
    return this.#statements.run({ operation, text: this.#sql[operation], values });
  }
}

const missingTable =
  'Expected the table of the lock store in the database, but it is missing: run the SQL of `postgresCasTable()`';

const tableRules = {
  table: text(/^[a-z_][a-z0-9_]{0,40}(\.[a-z_][a-z0-9_]{0,40})?$/, 'the name of a table, in lower case'),
};

const rules = { pool: pgPool('connect'), ...tableRules };

function withSchema(table: string): string {
  return table.includes('.') ? table : `public.${table}`;
}

type Operation = 'read' | 'create' | 'replace' | 'remove';

function statements(table: string): Readonly<Record<Operation, string>> {
  const text = (parameter: string): string => `convert_from(${parameter}, 'UTF8')`;
  const until = (parameter: string): string => `clock_timestamp() + ${parameter} * interval '1 millisecond'`;
  return {
    // Without a value, the time alone.
    read: `SELECT convert_to(concat_ws(' ', floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
  (SELECT value FROM ${table} WHERE key = ${text('$1')})), 'UTF8')`,
    create: `WITH expired AS (
  SELECT key FROM ${table} WHERE expires_at < clock_timestamp() AND key <> ${text('$1')}
  ORDER BY expires_at LIMIT 2 FOR UPDATE SKIP LOCKED
), swept AS (
  DELETE FROM ${table} WHERE key IN (SELECT key FROM expired)
)
INSERT INTO ${table} (key, value, expires_at) VALUES (${text('$1')}, ${text('$2')}, ${until('$3')})
ON CONFLICT (key) DO NOTHING RETURNING key`,
    replace: `UPDATE ${table} SET value = ${text('$3')}, expires_at = ${until('$4')}
WHERE key = ${text('$1')} AND value = ${text('$2')} RETURNING key`,
    remove: `DELETE FROM ${table} WHERE key = ${text('$1')} AND value = ${text('$2')} RETURNING key`,
  };
}
