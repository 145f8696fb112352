/** The stores for many processes: `reenlock/redis`. */

// Redis with scripts: one round trip an operation, grants by message.

export type { RedisClient } from './stores/redis/drivers/driver-of.ts';
export { RedisStore, type RedisStoreOptions } from './stores/redis/redis-store.ts';

// Any server with a compare-and-set, and what it takes to write an adapter.

export type { ServerWarning } from './model/store.ts';
export type { CasAdapter, CasReading } from './stores/cas/adapter.ts';
export { CasStore, type CasStoreOptions } from './stores/cas/cas-store.ts';
export { PostgresCas, type PostgresCasOptions, postgresCasTable } from './stores/cas/postgres-cas.ts';
export { RedisCas, type RedisCasOptions } from './stores/cas/redis-cas.ts';
export type { PostgresClient, PostgresPool, PostgresPoolClient, PostgresResult } from './stores/postgres/pool.ts';

// Several independent stores, of which more than half decide.

export { type NodeOutcome, QuorumFailure } from './stores/quorum/errors.ts';
export { QuorumStore, type QuorumStoreOptions } from './stores/quorum/quorum-store.ts';
