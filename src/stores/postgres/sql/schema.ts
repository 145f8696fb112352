import { holds } from './holds.ts';
import { operations } from './operations.ts';
import { queue } from './queue.ts';
import { reading } from './reading.ts';
import { serverName } from './server-name.ts';
import { tables } from './tables.ts';
import { upkeep } from './upkeep.ts';

/** The format of the stored data. A process with another format refuses to work. Raised if older code would go wrong. */
export const format = 1;
/** Raised with each change of the SQL, so that the newest functions stay, in whatever order processes migrate. */
export const revision = 21;

export const defaultSchema = 'reenlock';

/** The SQL that creates the schema, or updates it to this version. Run it in one transaction. It may run again. */
export function schemaSql(schema: string): string {
  return [begin, tables, holds, queue, operations, reading, upkeep, end]
    .join('')
    .trimStart()
    .replaceAll('{definer}', definer)
    .replaceAll('{server}', serverName)
    .replaceAll('{schema}', schema)
    .replaceAll('{format}', String(format))
    .replaceAll('{revision}', String(revision));
}

/**
 * How each function is declared that a process calls. It runs with the rights of the schema's owner. No plan may read a whole
 * table: a session keeps its plans while tables grow, and a table without live rows may have many dead ones. Nor may a plan use
 * a bitmap: only a plain scan of an index marks dead rows, for the next one to skip.
 */
const definer =
  'SECURITY DEFINER SET search_path = {schema}, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off';

const begin = `
-- One process at a time: if two create the same object, one of them fails.
SELECT pg_advisory_xact_lock(hashtextextended('reenlock schema {schema}', 0));

DO $$ BEGIN
  IF to_regnamespace('{schema}') IS NULL THEN CREATE SCHEMA {schema}; END IF;
END $$;

CREATE TABLE IF NOT EXISTS {schema}.format (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  format integer NOT NULL,
  revision integer NOT NULL
);

DO $$ BEGIN
  IF EXISTS (SELECT FROM {schema}.format AS f WHERE f.format > {format} OR f.revision > {revision}) THEN
    RAISE SQLSTATE 'RL001' USING MESSAGE = 'the schema {schema} has a newer version';
  END IF;
END $$;
`;

const end = `
INSERT INTO {schema}.format (format, revision) VALUES ({format}, {revision})
ON CONFLICT (is_only) DO UPDATE SET format = excluded.format, revision = excluded.revision;
`;
