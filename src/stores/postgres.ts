/** The store for many processes that have a PostgreSQL database: `reenlock/postgres`. */

export type { PostgresClient, PostgresPool, PostgresPoolClient, PostgresResult } from './postgres/pool.ts';
export { PostgresStore, type PostgresStoreOptions } from './postgres/postgres-store.ts';

// For your own migrations.

export { postgresSchema } from './postgres/migration.ts';
