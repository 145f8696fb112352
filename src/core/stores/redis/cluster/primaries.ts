import type { Cluster, Redis } from 'ioredis';
import { pause, systemClock } from '../../../base/clock.ts';
import { ConnectionPool } from '../connection-pool.ts';
import { isElsewhere } from '../errors.ts';
import { isCluster, nodeKeyOf, primaryOf, type RedisOrCluster } from './cluster.ts';

const maxTries = 10;
const pauseMs = 100;

/** Connections of the store's own to the server that has a key: in a cluster, the primary of the key's slot. */
export class RedisPrimaries {
  readonly #client: RedisOrCluster;
  readonly #pools = new Map<string, ConnectionPool>();
  #isClosed = false;

  constructor(client: RedisOrCluster) {
    this.#client = client;
  }

  /** Runs a task on a connection to the server of a key; again on another one if the first server did not have the key. */
  run<T>(key: string, task: (connection: Redis) => Promise<T>): Promise<T> {
    const client = this.#client;
    return isCluster(client) ? this.#follow(client, key, task) : this.#poolOf('', client).run(task);
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
   * A call of the client's own makes it find the server that has the key now. While a slot moves, perhaps none serves the
   * key: it is tried for a second.
   */
  async #follow<T>(cluster: Cluster, key: string, task: (connection: Redis) => Promise<T>): Promise<T> {
    let failure: unknown = new Error('The cluster has no server for the key');
    for (let tries = 0; tries < maxTries; tries++) {
      if (tries > 1) await pause(systemClock, pauseMs);
      const nodeKey = nodeKeyOf(cluster, key);
      const primary = nodeKey === undefined ? undefined : primaryOf(cluster, nodeKey);
      if (nodeKey !== undefined && primary !== undefined) {
        let hasBegun = false;
        const begin = (connection: Redis): Promise<T> => {
          hasBegun = true;
          return task(connection);
        };
        try {
          return await this.#poolOf(nodeKey, primary).run(begin);
        } catch (error) {
          // If the task has not begun, the server may be gone, and the client may not know that yet.
          if (hasBegun && !isElsewhere(error)) throw error;
          failure = error;
        }
      }
      // The client sends scripts to no replica. A read from a replica would not show that a primary is gone.
      await cluster.eval('return 1', 1, key);
    }
    throw failure;
  }

  #poolOf(name: string, client: Redis): ConnectionPool {
    const known = this.#pools.get(name);
    if (known !== undefined) return known;
    this.#dropGone();
    const { keyPrefix } = this.#client.options;
    const pool = new ConnectionPool(client, systemClock, { keyPrefix: keyPrefix ?? '', readOnly: false });
    if (this.#isClosed) pool.close();
    this.#pools.set(name, pool);
    return pool;
  }

  /** A server may have another address after each start. A task that uses a connection to the former address keeps it. */
  #dropGone(): void {
    const client = this.#client;
    if (!isCluster(client)) return;
    for (const [nodeKey, pool] of this.#pools) {
      if (primaryOf(client, nodeKey) !== undefined) continue;
      pool.close();
      this.#pools.delete(nodeKey);
    }
  }
}
