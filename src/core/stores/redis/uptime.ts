import type { Redis } from 'ioredis';
import { type Clock, type Instant, systemClock } from '../../base/clock.ts';
import { isCluster, type RedisOrCluster } from './cluster/cluster.ts';
import { storeError } from './errors.ts';

interface Known {
  readonly stream: Redis['stream'];
  readonly uptimeMs: number;
  readonly received: Instant;
}

/**
 * How long a Redis server has been up. It is asked once a connection: a server that restarted has closed them all. Needs
 * the right to call INFO. A cluster has no one answer.
 */
export class RedisUptime {
  readonly #client: RedisOrCluster;
  readonly #clock: Clock;
  #known: Known | undefined;

  constructor(client: RedisOrCluster, clock: Clock = systemClock) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Milliseconds, up to two seconds less than when the server answered, never more. Rejects with a `LockStoreError`. */
  async uptimeMs(): Promise<number> {
    const client = this.#client;
    if (isCluster(client)) throw storeError('uptime', new Error('A cluster can not tell for how long it is up'));
    const { stream } = client;
    if (stream !== undefined && this.#known?.stream === stream) return this.#since(this.#known);
    const info = await client.info('server').catch((error: unknown) => {
      throw storeError('uptime', error);
    });
    const seconds = /^uptime_in_seconds:(-?\d+)/m.exec(info)?.[1];
    if (seconds === undefined) throw storeError('uptime', new Error('INFO has no uptime_in_seconds'));
    // Start and end are whole seconds, so that it may tell one too many. Where the server's clock was set back since the
    // start it is below zero, and the connection alone tells how long it is up.
    const uptimeMs = Math.max(0, Number(seconds) - 1) * 1000;
    // It is counted on from the answer, not from the call, which would add what the call took. Kept under the connection
    // that the call was sent on: where that ended meanwhile, the next one's server may have answered, and is asked again.
    this.#known = { stream, uptimeMs, received: this.#clock.now() };
    return uptimeMs;
  }

  /** By the monotonic clock: the other may step. */
  #since({ uptimeMs, received }: Known): number {
    return uptimeMs + this.#clock.now().monoMs - received.monoMs;
  }
}
