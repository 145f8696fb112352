/** The stores for many processes: `reenlock/redis`. */

// Redis with scripts: one round trip an operation, grants by message.

export { RedisStore, type RedisStoreOptions } from './redis-store.ts';

// Any server with a compare-and-set, and what it takes to write an adapter.

export type { CasAdapter, CasReading, CasWarning } from './cas-adapter.ts';
export { CasStore, type CasStoreOptions } from './cas-store.ts';
export {
  PostgresCas,
  type PostgresCasOptions,
  type PostgresPool,
  type PostgresResult,
  postgresCasTable,
} from './postgres-cas.ts';
export { RedisCas, type RedisCasOptions } from './redis-cas.ts';

// Several independent stores, of which more than half decide.

export { type NodeOutcome, QuorumFailure } from './quorum-errors.ts';
export { QuorumStore, type QuorumStoreOptions } from './quorum-store.ts';
