import type { Redis } from 'ioredis';
import { type Clock, type Instant, systemClock } from '../clock.ts';
import { isCluster, type RedisOrCluster } from './redis-cluster.ts';
import { storeError } from './redis-errors.ts';

interface Known {
  readonly stream: Redis['stream'];
  readonly uptimeMs: number;
  readonly sent: Instant;
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

  /** Milliseconds, up to two seconds less than in truth. Rejects with a `LockStoreError`. */
  async uptimeMs(): Promise<number> {
    const client = this.#client;
    if (isCluster(client)) throw storeError('uptime', new Error('A cluster can not tell for how long it is up'));
    const { stream } = client;
    if (stream !== undefined && this.#known?.stream === stream) return this.#since(this.#known);
    const sent = this.#clock.now();
    const info = await client.info('server').catch((error: unknown) => {
      throw storeError('uptime', error);
    });
    const seconds = /^uptime_in_seconds:(\d+)/m.exec(info)?.[1];
    if (seconds === undefined) throw storeError('uptime', new Error('INFO has no uptime_in_seconds'));
    // Sent on a connection that ended, the answer may be of the next one: it is not kept.
    // Both ends of it were cut to whole seconds.
    const known = { stream, uptimeMs: Math.max(0, Number(seconds) - 1) * 1000, sent };
    if (stream !== undefined && client.stream === stream) this.#known = known;
    return known.uptimeMs;
  }

  /** By the monotonic clock: the other may step. */
  #since({ uptimeMs, sent }: Known): number {
    return uptimeMs + this.#clock.now().monoMs - sent.monoMs;
  }
}
