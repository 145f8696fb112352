import { inTime, systemClock } from '../../core/base/clock.ts';
import { LockStoreError } from '../../core/model/errors/failures.ts';
import { checkOptions, narrowed, type Rule, text } from '../../core/model/validate.ts';
import { isMissing, isOtherFormat, storeError } from './errors.ts';
import { borrow, type PostgresPool, returnConnection } from './pool.ts';
import { defaultSchema, format, revision, schemaSql } from './sql/schema.ts';
import { PostgresStatements } from './statements.ts';

/** The tables have plain names: the schema must contain nothing else. */
export const schemaName: Rule = narrowed(
  text(/^[a-z_][a-z0-9_]{0,40}$/, 'the name of a schema that only the store uses, in lower case'),
  (value) => value !== 'public' && !String(value).startsWith('pg_'),
);

/**
 * Returns the SQL that creates the schema of a `PostgresStore` (default `reenlock`), or updates it to this version. Run it in one
 * transaction. It may run again. Throws `LockConfigError` for a bad name.
 *
 * @example
 * ```ts
 * import { writeFileSync } from 'node:fs';
 * import { postgresSchema } from 'reenlock/postgres';
 *
 * writeFileSync('migrations/0007-locks.sql', postgresSchema());
 * ```
 */
export function postgresSchema(schema: string = defaultSchema): string {
  checkOptions({ schema }, { schema: schemaName }, 'postgresSchema');
  return schemaSql(schema);
}

/** The tables may be large, and other transactions may use them. */
const timeoutMs = 60_000;

/**
 * Settings that the role, the database or an earlier borrower may have changed. A process that waited for another one must see
 * the objects that the other one created. The client's timeout is the only one.
 */
const settings = `
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCAL lock_timeout = 0;
SET LOCAL statement_timeout = 0;
`;

/** Creates the schema, or updates it to this version. */
export async function migrate(pool: PostgresPool, schema: string): Promise<void> {
  const statements = new PostgresStatements(pool, systemClock, timeoutMs);
  if (await isCurrent(statements, schema)) return;
  const client = await borrow(pool, systemClock, timeoutMs).catch((cause: unknown) => {
    throw storeError('migrate', cause, false);
  });
  let isDone = false;
  try {
    // A query without values is one transaction, even with many statements.
    await inTime(systemClock, timeoutMs, client.query(settings + schemaSql(schema)));
    isDone = true;
  } catch (cause) {
    // A newer version may have migrated it in between.
    if (isOtherFormat(cause) && (await isCurrent(statements, schema))) return;
    throw storeError('migrate', cause);
  } finally {
    returnConnection(client, isDone);
  }
}

/** Whether the schema has this version, or a newer one of the same format. */
async function isCurrent(statements: PostgresStatements, schema: string): Promise<boolean> {
  const text = `SELECT ${schema}.version()::text`;
  const [reply] = await statements
    .run({ operation: 'migrate', text, values: () => [] })
    .catch((error: LockStoreError) => {
      if (isMissing(error.cause)) return [];
      throw error;
    });
  if (reply === undefined) return false;
  const [itsFormat, itsRevision] = JSON.parse(String(reply)) as [number, number];
  if (itsFormat > format) {
    const message = `Expected the schema of the lock store to have format ${format}, got ${itsFormat}: a newer version of the package has migrated it. Use that version here, too`;
    throw new LockStoreError(message, { outcome: 'not-applied' });
  }
  return itsFormat === format && itsRevision >= revision;
}
