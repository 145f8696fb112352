import { pause, systemClock } from '../../../core/base/clock.ts';
import { ConnectionPool } from '../connection-pool.ts';
import type { RedisClusterDriver, RedisConnection, RedisDriver } from '../drivers/driver.ts';
import { isElsewhere } from '../errors.ts';

const maxTries = 10;
const pauseMs = 100;

/** The store's own connections to the server that has a key: in a cluster, the primary of the key's slot. */
export class RedisPrimaries {
  readonly #driver: RedisDriver;
  readonly #pools = new Map<string, ConnectionPool>();
  #isClosed = false;

  constructor(driver: RedisDriver) {
    this.#driver = driver;
  }

  /** Runs a task on a connection to the server of a key; again on another one if the first server did not have the key. */
  run<T>(key: string, task: (connection: RedisConnection) => Promise<T>): Promise<T> {
    const { cluster } = this.#driver;
    return cluster ? this.#follow(cluster, key, task) : this.#poolOf().run(task);
  }

  /** As for `ConnectionPool`. */
  open(): void {
    this.#isClosed = false;
    for (const pool of this.#pools.values()) pool.open();
  }

  /** As for `ConnectionPool`. */
  close(): void {
    this.#isClosed = true;
    for (const pool of this.#pools.values()) pool.close();
  }

  /**
   * A command makes the client find the server that has the key now. While a slot moves, perhaps none serves the key: it is
   * tried for a second.
   */
  async #follow<T>(
    cluster: RedisClusterDriver,
    key: string,
    task: (connection: RedisConnection) => Promise<T>,
  ): Promise<T> {
    let failure: unknown = new Error('The cluster has no server for the key');
    for (let tries = 0; tries < maxTries; tries++) {
      if (tries > 1) await pause(systemClock, pauseMs);
      const primary = cluster.primaryOf(key);
      if (primary !== undefined && cluster.node(primary) !== undefined) {
        let hasBegun = false;
        const begin = (connection: RedisConnection): Promise<T> => {
          hasBegun = true;
          return task(connection);
        };
        try {
          return await this.#poolOf(primary).run(begin);
        } catch (error) {
          // If the task has not begun, the server may be gone, and the client may not know that yet.
          if (hasBegun && !isElsewhere(this.#driver, error)) throw error;
          failure = error;
        }
      }
      // The client sends scripts to no replica. A read from a replica would not show that a primary is gone.
      await this.#driver.connection.connected();
      await this.#driver.send(['eval', 'return 1', 1, key]);
    }
    throw failure;
  }

  #poolOf(primary = ''): ConnectionPool {
    const known = this.#pools.get(primary);
    if (known !== undefined) return known;
    this.#dropGone();
    const pool = new ConnectionPool(() => {
      const connection = this.#driver.createConnection(primary);
      if (connection === undefined) throw new Error('The cluster has no server for the key');
      return connection;
    });
    if (this.#isClosed) pool.close();
    this.#pools.set(primary, pool);
    return pool;
  }

  /** A server may have another address after each start. A task that uses a connection to the former address keeps it. */
  #dropGone(): void {
    const { cluster } = this.#driver;
    if (cluster === undefined) return;
    for (const [primary, pool] of this.#pools) {
      if (cluster.node(primary) !== undefined) continue;
      pool.close();
      this.#pools.delete(primary);
    }
  }
}
