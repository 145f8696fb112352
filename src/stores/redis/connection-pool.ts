import { type Clock, systemClock, type Timer } from '../../core/base/clock.ts';
import type { RedisConnection } from './drivers/driver.ts';

const maxConnections = 4;
const idleMs = 5_000;

/**
 * A few connections in addition to the application's client, for tasks that need one alone, such as WATCH and WAIT. Each serves
 * one task at a time and never reconnects: a transaction that was sent again on a new connection would compare nothing.
 * Connections are opened when needed. Idle ones do not keep the process alive, and are closed after some seconds; after `close`,
 * at once.
 */
export class ConnectionPool {
  readonly #create: () => RedisConnection;
  readonly #clock: Clock;
  readonly #idle: RedisConnection[] = [];
  readonly #waiting: (() => void)[] = [];
  #busyCount = 0;
  #isClosed = false;
  #idleTimer: Timer | undefined;

  /** `create` makes a connection that is not open yet. */
  constructor(create: () => RedisConnection, clock: Clock = systemClock) {
    this.#create = create;
    this.#clock = clock;
  }

  /** Runs a task on a connection. If the task fails, its connection is closed: its state is unknown. */
  async run<T>(task: (connection: RedisConnection) => Promise<T>): Promise<T> {
    if (this.#busyCount >= maxConnections) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#busyCount += 1;
    this.#idleTimer?.cancel();
    let connection: RedisConnection | undefined;
    try {
      connection = this.#takeIdle() ?? (await this.#open());
      connection.ref();
      const result = await task(connection);
      this.#putBack(connection);
      return result;
    } catch (error) {
      connection?.close();
      throw error;
    } finally {
      this.#startNext();
    }
  }

  /** Keeps idle connections again, after a `close`. */
  open(): void {
    this.#isClosed = false;
  }

  /** From now on every connection is closed after its task. A later task still gets a connection. */
  close(): void {
    this.#isClosed = true;
    this.#idleTimer?.cancel();
    this.#closeIdle();
  }

  #closeIdle(): void {
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  #putBack(connection: RedisConnection): void {
    if (this.#isClosed) {
      connection.close();
      return;
    }
    connection.unref();
    this.#idle.push(connection);
  }

  #takeIdle(): RedisConnection | undefined {
    for (let known = this.#idle.pop(); known !== undefined; known = this.#idle.pop()) {
      if (known.isUsable) return known;
      known.close();
    }
    return undefined;
  }

  async #open(): Promise<RedisConnection> {
    const connection = this.#create();
    try {
      await connection.open();
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** The next waiting task takes the connection. The timer runs while no task does; the next task cancels it. */
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
