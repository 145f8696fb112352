/** The stores for many processes: `reenlock/redis`. */
// Redis with scripts: one round trip an operation, grants by message.

export type { CasAdapter, CasReading, CasWarning } from './cas-adapter.ts';
// Any server with a compare-and-set, and what it takes to write an adapter.
export { CasStore, type CasStoreOptions } from './cas-store.ts';
export {
  PostgresCas,
  type PostgresCasOptions,
  type PostgresPool,
  type PostgresResult,
  postgresCasTable,
} from './postgres-cas.ts';
// Several independent stores, of which more than half decide.
export { QuorumStore, type QuorumStoreOptions } from './quorum-store.ts';
export { type NodeOutcome, QuorumFailure } from './quorum-tally.ts';
export { RedisCas, type RedisCasOptions } from './redis-cas.ts';
export { RedisStore, type RedisStoreOptions } from './redis-store.ts';
