import { LockStoreError } from '../../model/errors.ts';
import { checkOptions, objectWith, text } from '../../model/validate.ts';
import type { CasAdapter, CasReading } from './adapter.ts';

/** The part of a `Pool` of the `pg` package that is used. */
export interface PostgresPool {
  query(text: string, values: unknown[]): Promise<PostgresResult>;
}

/** The part of a query result that is used. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
  readonly rowCount: number | null;
}

/** Which database keeps the records, in which table. */
export interface PostgresCasOptions {
  /** The application's pool, connected to the primary. It is neither changed nor closed. */
  readonly pool: PostgresPool;
  /** The name of the table, as given to `postgresCasTable`. Default `reenlock_locks`. */
  readonly table?: string | undefined;
}

const defaultTable = 'reenlock_locks';

/** Returns the SQL that creates the table. It may run again. The name is in lower case, and may begin with a schema. */
export function postgresCasTable(table: string = defaultTable): string {
  checkOptions({ table }, tableRules, 'postgresCasTable');
  const index = `${table.replace('.', '_')}_expires_at`;
  return `CREATE TABLE IF NOT EXISTS ${table} (
  key text PRIMARY KEY,
  value text NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS ${index} ON ${table} (expires_at);
`;
}

/**
 * Keeps the records in a table of PostgreSQL, 12 or newer. Each operation is one statement. A statement that adds a row also
 * removes up to two expired rows, so the table needs no other cleaning. Throws `LockConfigError` for bad options.
 */
export class PostgresCas implements CasAdapter {
  readonly #pool: PostgresPool;
  readonly #sql: ReturnType<typeof statements>;

  constructor(options: PostgresCasOptions) {
    const { pool, table = defaultTable } = checkOptions(options, rules, 'PostgresCas', 'pool');
    this.#pool = pool;
    this.#sql = statements(table);
  }

  async read(key: string): Promise<CasReading> {
    const { rows } = await this.#pool.query(this.#sql.read, [key]);
    const { now_us, value } = rows[0] as { now_us: string; value: string | null };
    return { value: value ?? undefined, nowUs: Number(now_us) };
  }

  create(key: string, value: string, ttlMs: number): Promise<boolean> {
    return this.#write(this.#sql.create, [key, value, ttlMs]);
  }

  replace(key: string, old: string, value: string, ttlMs: number): Promise<boolean> {
    return this.#write(this.#sql.replace, [key, old, value, ttlMs]);
  }

  remove(key: string, old: string): Promise<boolean> {
    return this.#write(this.#sql.remove, [key, old]);
  }

  async #write(statement: string, values: unknown[]): Promise<boolean> {
    try {
      return (await this.#pool.query(statement, values)).rowCount === 1;
    } catch (cause) {
      const state = stateOf(cause);
      if (state !== undefined && conflicts.has(state)) return false;
      if (state === undefined || unclear.test(state)) throw cause;
      throw new LockStoreError('The lock store refused to write', { cause, outcome: 'not-applied' });
    }
  }
}

const tableRules = {
  table: text(/^[a-z_][a-z0-9_]{0,40}(\.[a-z_][a-z0-9_]{0,40})?$/, 'the name of a table, in lower case'),
};

const rules = { pool: objectWith('a Pool of the pg package', 'query'), ...tableRules };

function statements(table: string): Readonly<Record<'read' | 'create' | 'replace' | 'remove', string>> {
  const until = (parameter: string): string => `clock_timestamp() + ${parameter} * interval '1 millisecond'`;
  return {
    read: `SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now_us,
  (SELECT value FROM ${table} WHERE key = $1) AS value`,
    create: `WITH expired AS (
  SELECT key FROM ${table} WHERE expires_at < clock_timestamp() AND key <> $1
  ORDER BY expires_at LIMIT 2 FOR UPDATE SKIP LOCKED
), swept AS (
  DELETE FROM ${table} WHERE key IN (SELECT key FROM expired)
)
INSERT INTO ${table} (key, value, expires_at) VALUES ($1, $2, ${until('$3')}) ON CONFLICT (key) DO NOTHING`,
    replace: `UPDATE ${table} SET value = $3, expires_at = ${until('$4')} WHERE key = $1 AND value = $2`,
    remove: `DELETE FROM ${table} WHERE key = $1 AND value = $2`,
  };
}

/** With an isolation level stricter than the default, these errors say that another transaction has changed the row. */
const conflicts = new Set(['40001', '40P01']);

/** The server went down, or does not know whether the statement was applied. */
const unclear = /^(08|57P0|58|XX|40003)/;

/** Errors of the server have a SQLSTATE. Errors of the connection have none; their code may be `EPIPE`, for example. */
function stateOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[0-9A-DF-Z][0-9A-Z]{4}$/.test(code) ? code : undefined;
}
