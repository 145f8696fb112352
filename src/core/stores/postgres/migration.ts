import { systemClock } from '../../base/clock.ts';
import { LockStoreError } from '../../model/errors.ts';
import { checkOptions, narrowed, type Rule, text } from '../../model/validate.ts';
import { isMissing, isOtherFormat, storeError } from './errors.ts';
import { borrow, inTime, type PostgresPool } from './pool.ts';
import { defaultSchema, format, revision, schemaSql } from './sql/schema.ts';
import { PostgresStatements } from './statements.ts';

/** Of a schema that is the store's alone: its tables have plain names. */
export const schemaName: Rule = narrowed(
  text(/^[a-z_][a-z0-9_]{0,40}$/, "the name of a schema of the store's own, in lower case"),
  (value) => value !== 'public' && !String(value).startsWith('pg_'),
);

/**
 * The SQL that makes the schema of a `PostgresStore`, or brings it to this version. It may be run again, in one transaction.
 * Throws `LockConfigError` for a name that is none.
 */
export function postgresSchema(schema: string = defaultSchema): string {
  checkOptions({ schema }, { schema: schemaName }, 'postgresSchema');
  return schemaSql(schema);
}

/** The tables may be large, and the lock on them in use. */
const timeoutMs = 60_000;

/** Makes the schema, or brings it to this version. */
export async function migrate(pool: PostgresPool, schema: string): Promise<void> {
  const statements = new PostgresStatements(pool, systemClock, timeoutMs);
  if (await isThere(statements, schema)) return;
  const client = await borrow(pool, systemClock, timeoutMs).catch((cause: unknown) => {
    throw storeError('migrate', cause, false);
  });
  client.on('error', ignore);
  let isDone = false;
  try {
    // Without values it is one transaction.
    await inTime(systemClock, timeoutMs, client.query(schemaSql(schema)));
    isDone = true;
  } catch (cause) {
    // A newer version may have been faster.
    if (isOtherFormat(cause) && (await isThere(statements, schema))) return;
    throw storeError('migrate', cause);
  } finally {
    client.release(!isDone);
    client.off('error', ignore);
  }
}

/** Whether the schema has this version, or a newer one of the same format. */
async function isThere(statements: PostgresStatements, schema: string): Promise<boolean> {
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

function ignore(): void {}
