import { elapsedMs, systemClock } from '../../../core/base/clock.ts';
import { LockStoreError } from '../../../core/model/errors.ts';
import type { StoreGrant, StoreListener } from '../../../core/model/store.ts';
import type { RedisConnection, RedisDriver } from '../drivers/driver.ts';
import { storeError } from '../errors.ts';
import { RedisScripts } from '../scripts.ts';
import { RedisPrimaries } from './primaries.ts';

/** How long the replicas may take to confirm, and a call to get a connection. Less than `storeTimeoutMs` by default. */
const confirmMs = 1_000;

/**
 * Calls that count only when replicas have what they wrote. WAIT speaks of the writes on its own connection: it is sent on
 * the connection that wrote, which serves no other call in the meantime and never reconnects.
 */
export class RedisReplicas {
  readonly #driver: RedisDriver;
  readonly #count: number;
  readonly #connections: RedisPrimaries;

  constructor(driver: RedisDriver, count: number) {
    this.#driver = driver;
    this.#count = count;
    this.#connections = new RedisPrimaries(driver);
  }

  /**
   * Makes `calls` about a key on one connection. If `counts` says that their reply needs it, WAIT follows; the last call
   * must have written something. Rejects with a `LockStoreError` if too few replicas confirm in time: what was written
   * stays. If no connection is free in time, nothing is sent, since it might arrive after the caller's attempts to undo
   * it: calls `onUnsent`, and rejects.
   */
  async confirmed<T>(
    operation: string,
    key: string,
    calls: (scripts: RedisScripts) => Promise<T>,
    counts: (reply: T) => boolean,
    onUnsent?: () => void,
  ): Promise<T> {
    const startedAt = systemClock.now();
    const task = async (connection: RedisConnection): Promise<readonly [T, number] | undefined> => {
      if (elapsedMs(systemClock.now(), startedAt) > confirmMs) return undefined;
      const reply = await calls(new RedisScripts(this.#driver, connection));
      // As if all replicas had confirmed it.
      if (!counts(reply)) return [reply, this.#count];
      const confirmed = connection.send(['wait', this.#count, confirmMs]).catch((cause: unknown) => {
        // Whatever the server replies to WAIT, the write was made.
        throw storeError(this.#driver, operation, cause, false);
      });
      return [reply, Number(await confirmed)];
    };
    const result = await this.#connections.run(key, task).catch((error: unknown) => {
      throw error instanceof LockStoreError ? error : storeError(this.#driver, operation, error);
    });
    if (result === undefined) {
      onUnsent?.();
      const message = `The lock store's replicas are too slow: ${operation} was not sent`;
      throw new LockStoreError(message, { outcome: 'not-applied' });
    }
    const [reply, count] = result;
    if (count >= this.#count) return reply;
    const message = `Expected ${this.#count} of the lock store's replicas to confirm ${operation}, but ${count} did`;
    throw new LockStoreError(message, { outcome: 'unknown' });
  }

  /** Keeps idle connections for some seconds again, after a `close`. */
  open(): void {
    this.#connections.open();
  }

  /** From now on each connection is closed with the call that it is used for. */
  close(): void {
    this.#connections.close();
  }
}

/** Makes a grant that cannot be shown to be alive, so that the store is asked before the grant is used. */
export function wakeUp(grant: StoreGrant): StoreGrant {
  return { ...grant, endMs: 0 };
}

/** Passes grants on as wake-ups. */
export function wakeUpsOnly(listener: StoreListener): StoreListener {
  return (message) =>
    listener(message.kind === 'granted' ? { kind: 'granted', grant: wakeUp(message.grant) } : message);
}
