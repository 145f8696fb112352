import type { Redis } from 'ioredis';
import { isUnknownScript, storeError } from './redis-errors.ts';

/** One operation as it is sent; the generated module has them. */
export interface RedisScript {
  readonly name: string;
  readonly source: string;
  readonly sha1: string;
}

/** The user's client; never mutated, so no `defineCommand`. */
export type RedisClient = Redis;

/**
 * Runs a script by its digest, and by its source where the server has not seen it (first use, restart, SCRIPT FLUSH).
 * Rejects with a `LockStoreError`.
 */
export function runScript<T>(
  client: RedisClient,
  script: RedisScript,
  keys: readonly string[],
  args: readonly (string | number)[],
  read: (reply: unknown) => T,
): Promise<T> {
  return client.evalsha(script.sha1, keys.length, ...keys, ...args).then(read, (error: unknown) => {
    if (!isUnknownScript(error)) throw storeError(script.name, error);
    return client.eval(script.source, keys.length, ...keys, ...args).then(read, (again: unknown) => {
      throw storeError(script.name, again);
    });
  });
}
