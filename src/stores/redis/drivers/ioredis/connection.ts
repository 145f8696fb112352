import type { Redis, RedisOptions } from 'ioredis';
import type { RedisConnection } from '../driver.ts';
import { IoredisSender } from './calls.ts';

const replyTimeoutMs = 2_000;

/** A new connection to the server of an ioredis client, or to one of its nodes. `options` override those of the client. */
export class IoredisConnection extends IoredisSender implements RedisConnection {
  readonly #origin: Redis;

  constructor(origin: Redis, options: RedisOptions = {}) {
    const connection = origin.duplicate({
      ...options,
      db: databaseOf(origin),
      lazyConnect: true,
      retryStrategy: () => null,
      sentinelRetryStrategy: () => null,
      reconnectOnError: null,
      enableOfflineQueue: false,
      enableAutoPipelining: false,
      autoResendUnfulfilledCommands: false,
      commandTimeout: replyTimeoutMs,
      // It would count from the last reply, and WAIT may take a second.
      socketTimeout: undefined,
    });
    // Every call rejects with the same error.
    connection.on('error', () => {});
    super(connection);
    this.#origin = origin;
  }

  get isUsable(): boolean {
    return this.client.status === 'ready' && this.client.options.db === databaseOf(this.#origin);
  }

  async open(): Promise<void> {
    await this.client.connect();
  }

  ref(): void {
    this.client.stream?.ref();
  }

  unref(): void {
    this.client.stream?.unref();
  }

  close(): void {
    this.client.disconnect();
  }
}

/** The application's keys are in the database that its client has selected last. */
function databaseOf(client: Redis): number {
  return client.condition?.select ?? client.options.db ?? 0;
}
