import type { Redis, RedisOptions } from 'ioredis';
import { type Clock, systemClock, type Timer } from '../../base/clock.ts';

const mostConnections = 4;
const idleMs = 5_000;
const answerMs = 2_000;

/**
 * Connections for transactions, beside the application's client. WATCH is of a connection, so each serves one transaction
 * at a time, and never reconnects: a transaction sent again on a new connection would compare nothing. They are
 * opened as they are needed, a few at most, do not keep the process alive while idle, and are closed after some seconds
 * without use; at once, where this was closed meanwhile.
 */
export class RedisTransactions {
  readonly #client: Redis;
  readonly #clock: Clock;
  readonly #options: RedisOptions;
  readonly #idle: Redis[] = [];
  readonly #waiting: (() => void)[] = [];
  #busy = 0;
  #isClosed = false;
  #idleTimer: Timer | undefined;

  /** The options are for the connections, in place of the client's. */
  constructor(client: Redis, clock: Clock = systemClock, options: RedisOptions = {}) {
    this.#client = client;
    this.#clock = clock;
    this.#options = options;
  }

  /** Lends a connection. After a failure, nobody can know what it still watches or sends: it is closed. */
  async run<T>(work: (connection: Redis) => Promise<T>): Promise<T> {
    if (this.#busy >= mostConnections) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#busy += 1;
    this.#idleTimer?.cancel();
    const connection = this.#take();
    try {
      if (connection.status === 'wait') await connection.connect();
      connection.stream?.ref();
      const answer = await work(connection);
      this.#giveBack(connection);
      return answer;
    } catch (error) {
      connection.disconnect();
      throw error;
    } finally {
      this.#handOn();
    }
  }

  /** Keeps connections for the next transaction again, after a `close`. */
  open(): void {
    this.#isClosed = false;
  }

  /** From now on a connection is closed as soon as nobody uses it: a transaction may still come, and opens its own. */
  close(): void {
    this.#isClosed = true;
    this.#idleTimer?.cancel();
    this.#closeIdle();
  }

  #closeIdle(): void {
    for (const connection of this.#idle.splice(0)) connection.disconnect();
  }

  #giveBack(connection: Redis): void {
    if (this.#isClosed) {
      connection.disconnect();
      return;
    }
    connection.stream?.unref();
    this.#idle.push(connection);
  }

  #take(): Redis {
    // Its keys are where the application's are: in the database that it has selected since, too.
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
      commandTimeout: answerMs,
    });
    // Said to each call as well.
    connection.on('error', () => {});
    return connection;
  }

  /** Whoever waits takes over the place; the timer runs while nobody is busy, and is cleared by the next transaction. */
  #handOn(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) {
      next();
      return;
    }
    this.#busy -= 1;
    if (this.#busy === 0 && this.#idle.length > 0) this.#idleTimer = this.#clock.after(idleMs, () => this.#closeIdle());
  }
}
