/** The stores for many processes: `reenlock/redis`. */

// Redis with scripts: one round trip an operation, grants by message.

export type { RedisClient } from './redis/drivers/driver-of.ts';
export { RedisStore, type RedisStoreOptions } from './redis/redis-store.ts';

// Any server with a compare-and-set, and what it takes to write an adapter.

export type { ServerWarning } from '../core/model/store.ts';
export type { CasAdapter, CasReading } from './cas/adapter.ts';
export { CasStore, type CasStoreOptions } from './cas/cas-store.ts';
export { PostgresCas, type PostgresCasOptions, postgresCasTable } from './cas/postgres-cas.ts';
export { RedisCas, type RedisCasOptions } from './cas/redis-cas.ts';
export type { PostgresClient, PostgresPool, PostgresPoolClient, PostgresResult } from './postgres/pool.ts';

// Several independent stores, of which more than half decide.

export { type NodeOutcome, QuorumFailure } from './quorum/errors.ts';
export { QuorumStore, type QuorumStoreOptions } from './quorum/quorum-store.ts';

// For your own store, if it has no queue.

export { RetryingStore } from './retrying/retrying-store.ts';
