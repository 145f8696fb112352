import type { Redis } from 'ioredis';
import { elapsedMs, systemClock } from '../../../base/clock.ts';
import { LockStoreError } from '../../../model/errors.ts';
import type { StoreGrant, StoreListener } from '../../../model/store.ts';
import { storeError } from '../errors.ts';
import { RedisScripts } from '../scripts.ts';
import type { RedisOrCluster } from './cluster.ts';
import { RedisPrimaries } from './primaries.ts';

/** How long replicas have to confirm, and a call to get a connection; below the default of `storeTimeoutMs`. */
const confirmMs = 1_000;

/**
 * Calls that count only when replicas have what they wrote: WAIT, on the connection that wrote, which is lent to nobody
 * else meanwhile and never reconnects. On another one, or after a reconnect, WAIT would speak of other writes.
 */
export class RedisReplicas {
  readonly #count: number;
  readonly #connections: RedisPrimaries;

  constructor(client: RedisOrCluster, count: number) {
    this.#count = count;
    this.#connections = new RedisPrimaries(client);
  }

  /**
   * Runs `calls` about a key on one connection, and then WAIT, where `counts` says that their reply is to be confirmed: the
   * last one must have written something then. Rejects with a `LockStoreError` where too few replicas confirm in time; what
   * was written stays. So it does where no connection was free in time, after `onUnsent`: nothing was sent, since it might
   * come after all that the caller did to undo it.
   */
  async confirmed<T>(
    operation: string,
    key: string,
    calls: (scripts: RedisScripts) => Promise<T>,
    counts: (reply: T) => boolean,
    onUnsent?: () => void,
  ): Promise<T> {
    const asked = systemClock.now();
    const work = async (connection: Redis): Promise<readonly [T, number] | undefined> => {
      if (elapsedMs(systemClock.now(), asked) > confirmMs) return undefined;
      const reply = await calls(new RedisScripts(connection));
      // As if all had confirmed it.
      if (!counts(reply)) return [reply, this.#count];
      const confirmed = connection.wait(this.#count, confirmMs).catch((cause: unknown) => {
        // Whatever the server says to WAIT: what was to be confirmed is written.
        throw storeError(operation, cause, false);
      });
      return [reply, await confirmed];
    };
    const answer = await this.#connections.run(key, work).catch((error: unknown) => {
      throw error instanceof LockStoreError ? error : storeError(operation, error);
    });
    if (answer === undefined) {
      onUnsent?.();
      const message = `The lock store's replicas are too slow: ${operation} was not sent`;
      throw new LockStoreError(message, { outcome: 'not-applied' });
    }
    const [reply, count] = answer;
    if (count >= this.#count) return reply;
    const message = `Of the lock store's replicas ${count} confirmed ${operation}, ${this.#count} must`;
    throw new LockStoreError(message, { outcome: 'unknown' });
  }

  /** Keeps connections between calls for some seconds, after a `close`. */
  open(): void {
    this.#connections.open();
  }

  /** From now on no connection outlives the call that it is used for. */
  close(): void {
    this.#connections.close();
  }
}

/** A grant that nobody can show to be alive, so that the store is asked before it is used. */
export function wakeUp(grant: StoreGrant): StoreGrant {
  return { ...grant, endMs: 0 };
}

/** Passes grants on as wake-ups. */
export function wakeUpsOnly(listener: StoreListener): StoreListener {
  return (message) =>
    listener(message.kind === 'granted' ? { kind: 'granted', grant: wakeUp(message.grant) } : message);
}
