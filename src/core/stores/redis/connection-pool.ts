import type { Redis, RedisOptions } from 'ioredis';
import { type Clock, systemClock, type Timer } from '../../base/clock.ts';

const maxConnections = 4;
const idleMs = 5_000;
const replyTimeoutMs = 2_000;

/**
 * A few connections beside the application's client, for what needs a connection of its own, such as WATCH and WAIT. Each
 * serves one task at a time and never reconnects: a transaction that was sent again on a new connection would compare
 * nothing. Connections are opened when needed. Idle ones do not keep the process alive, and are closed after some seconds;
 * after `close`, at once.
 */
export class ConnectionPool {
  readonly #client: Redis;
  readonly #clock: Clock;
  readonly #options: RedisOptions;
  readonly #idle: Redis[] = [];
  readonly #waiting: (() => void)[] = [];
  #busyCount = 0;
  #isClosed = false;
  #idleTimer: Timer | undefined;

  /** `options` override those of the client. */
  constructor(client: Redis, clock: Clock = systemClock, options: RedisOptions = {}) {
    this.#client = client;
    this.#clock = clock;
    this.#options = options;
  }

  /** Runs a task on a connection. If the task fails, its connection is closed: its state is unknown. */
  async run<T>(task: (connection: Redis) => Promise<T>): Promise<T> {
    if (this.#busyCount >= maxConnections) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#busyCount += 1;
    this.#idleTimer?.cancel();
    const connection = this.#take();
    try {
      if (connection.status === 'wait') await connection.connect();
      connection.stream?.ref();
      const result = await task(connection);
      this.#putBack(connection);
      return result;
    } catch (error) {
      connection.disconnect();
      throw error;
    } finally {
      this.#startNext();
    }
  }

  /** Keeps idle connections again, after a `close`. */
  open(): void {
    this.#isClosed = false;
  }

  /** From now on every connection is closed when its task is over. A later task still gets a connection. */
  close(): void {
    this.#isClosed = true;
    this.#idleTimer?.cancel();
    this.#closeIdle();
  }

  #closeIdle(): void {
    for (const connection of this.#idle.splice(0)) connection.disconnect();
  }

  #putBack(connection: Redis): void {
    if (this.#isClosed) {
      connection.disconnect();
      return;
    }
    connection.stream?.unref();
    this.#idle.push(connection);
  }

  #take(): Redis {
    // The application's keys are in the database that its client has selected last.
    const db = this.#client.condition?.select ?? this.#client.options.db ?? 0;
    for (let known = this.#idle.pop(); known !== undefined; known = this.#idle.pop()) {
      if (known.status === 'ready' && known.options.db === db) return known;
      known.disconnect();
    }
    const connection = this.#client.duplicate({
      ...this.#options,
      db,
      lazyConnect: true,
      retryStrategy: () => null,
      sentinelRetryStrategy: () => null,
      reconnectOnError: null,
      enableOfflineQueue: false,
      enableAutoPipelining: false,
      autoResendUnfulfilledCommands: false,
      commandTimeout: replyTimeoutMs,
    });
    // Every call rejects with the same error.
    connection.on('error', () => {});
    return connection;
  }

  /** The next waiting task takes over the place. The timer runs while no task does; the next task cancels it. */
  #startNext(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) {
      next();
      return;
    }
    this.#busyCount -= 1;
    if (this.#busyCount === 0 && this.#idle.length > 0) {
      this.#idleTimer = this.#clock.after(idleMs, () => this.#closeIdle());
    }
  }
}
