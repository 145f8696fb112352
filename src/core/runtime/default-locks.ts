import { processState, warnOnce } from '../base/process-state.ts';
import { LockConfigError } from '../model/errors/mistakes.ts';
import type { LocksOptions } from '../model/options.ts';
import { createLocks, type Locks } from './locks.ts';

/**
 * Creates a `Locks`, as `createLocks` does, and makes it the default of this process: for `traceContext`, `runInTrace` and calls
 * outside a request or job. It stays the default after it is closed, and refuses acquires then. A second call replaces it, and does
 * not close the first one. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import { configureLocks } from 'reenlock';
 * import { RedisStore } from 'reenlock/redis';
 * import { Redis } from 'ioredis';
 *
 * const client = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
 * export const locks = configureLocks({ store: new RedisStore({ client }) });
 * ```
 */
export function configureLocks(options?: LocksOptions): Locks {
  return configure(createLocks(options));
}

/** Makes a `Locks` the default of this process. */
export function configure(locks: Locks): Locks {
  const state = processState();
  state.configured = locks;
  state.created.clear();
  return locks;
}

/** Undoes `configure`, unless another `Locks` is the default by now. */
export function unconfigure(locks: Locks): void {
  const state = processState();
  if (state.configured === locks) state.configured = undefined;
}

/** The configured `Locks`; otherwise one in memory, with a warning. Throws if another was created: it would be unused. */
export function defaultLocks(): Locks {
  const state = processState();
  if (state.configured !== undefined) return state.configured as Locks;
  if (state.created.size > 0) {
    throw new LockConfigError(
      'Expected a default `Locks`, got only one that `createLocks` returned. Pass it as `{ locks }` to `traceContext` or `runInTrace`, or create it with `configureLocks`',
    );
  }
  if (process.env.NODE_ENV !== 'test') {
    warnOnce(
      'LOCK_MEMORY',
      'No `Locks` was configured: locks are kept in memory, and other processes are not excluded. Create one with `configureLocks`',
    );
  }
  return configureLocks();
}
