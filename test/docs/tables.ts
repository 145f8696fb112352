import { headingsOf, plain, type Row, readDocument, sectionOf, tableOf } from './markdown.ts';

const optionsPage = readDocument('docs/reference/options.md');
const table = (title: string): Row[] => tableOf(sectionOf(optionsPage, title));
export const names = (rows: readonly Row[]): string[] => rows.map(({ name }) => plain(name));

export const locksOptions: Row[] = table('createLocks and configureLocks');
export const traceOptions: Row[] = table('traceContext');
export const guardOptions: Row[] = table('lockOn');
export const acquireOptions: Row[] = table('acquire');
const others: Row[] = table('Stores, runInTrace and close');
export const othersOf = (of: string): string[] => names(others.filter((row) => plain(row.of) === of));
export const codesPage: string = 'docs/reference/errors.md';
export const errors: Row[] = tableOf(sectionOf(readDocument(codesPage), 'Classes'));
export const codes: string[] = headingsOf(sectionOf(readDocument(codesPage), 'Errors'));

/** A module that compiles only if the tables name what the types have, and nothing else. */
export function typesOfTables(): string {
  const lists: [type: string, names: string[]][] = [
    ['keyof LocksOptions', names(locksOptions)],
    ['keyof AcquireOptions', names(acquireOptions)],
    ['keyof TraceContextOptions', names(traceOptions)],
    ['keyof Koa.GuardOptions', [...names(acquireOptions), ...names(guardOptions)]],
    ['keyof RunInTraceOptions', othersOf('runInTrace')],
    ['keyof RedisStoreOptions', othersOf('RedisStore')],
    ['keyof PostgresStoreOptions', othersOf('PostgresStore')],
    ['keyof CasStoreOptions', othersOf('CasStore')],
    ['keyof RedisCasOptions', othersOf('RedisCas')],
    ['keyof PostgresCasOptions', othersOf('PostgresCas')],
    ['keyof MySqlCasOptions', othersOf('MySqlCas')],
    ['keyof QuorumStoreOptions', othersOf('QuorumStore')],
    ['keyof LockEvents', tableOf(readDocument('docs/reference/events.md')).map((row) => plain(row.event))],
    ['LockErrorCode', codes],
  ];
  const imports = [
    "import type { AcquireOptions, LockErrorCode, LockEvents, LocksOptions, RunInTraceOptions } from 'reenlock';",
    "import type { TraceContextOptions } from 'reenlock/express';",
    "import type * as Koa from 'reenlock/koa';",
    "import type { CasStoreOptions, PostgresCasOptions, RedisCasOptions, RedisStoreOptions } from 'reenlock/redis';",
    "import type { QuorumStoreOptions } from 'reenlock/redis';",
    "import type { MySqlCasOptions } from 'reenlock/mysql';",
    "import type { PostgresStoreOptions } from 'reenlock/postgres';",
  ];
  const records = lists.map(
    ([type, members], index) =>
      `export const list${index}: Record<${type}, true> = { ${members.map((name) => `${name}: true`).join(', ')} };`,
  );
  return [...imports, ...records].join('\n');
}
