/** The Redis side of the package: `reenlock/redis`. */
export { RedisStore, type RedisStoreOptions } from './redis-store.ts';
