import type { Cluster, Redis } from 'ioredis';
import { pause, systemClock } from '../../../base/clock.ts';
import { RedisTransactions } from '../connection-pool.ts';
import { isElsewhere } from '../errors.ts';
import { isCluster, nodeKeyOf, primaryOf, type RedisOrCluster } from './cluster.ts';

const mostTries = 10;
const pauseMs = 100;

/** Connections for transactions to the server that has a key: in a cluster, the primary of its slot. */
export class RedisPrimaries {
  readonly #client: RedisOrCluster;
  readonly #pools = new Map<string, RedisTransactions>();
  #isClosed = false;

  constructor(client: RedisOrCluster) {
    this.#client = client;
  }

  /** Lends a connection, and another where the first one's server had nothing to say of the key. */
  run<T>(key: string, work: (connection: Redis) => Promise<T>): Promise<T> {
    const client = this.#client;
    return isCluster(client) ? this.#follow(client, key, work) : this.#poolOf('', client).run(work);
  }

  /** As `RedisTransactions` has them. */
  open(): void {
    this.#isClosed = false;
    for (const pool of this.#pools.values()) pool.open();
  }

  close(): void {
    this.#isClosed = true;
    for (const pool of this.#pools.values()) pool.close();
  }

  /**
   * The client finds out by a call of its own which server has the key now. While a slot moves, none may serve it: it is
   * tried for a second.
   */
  async #follow<T>(cluster: Cluster, key: string, work: (connection: Redis) => Promise<T>): Promise<T> {
    let failure: unknown = new Error('The cluster has no server for the key');
    for (let tries = 0; tries < mostTries; tries++) {
      if (tries > 1) await pause(systemClock, pauseMs);
      const nodeKey = nodeKeyOf(cluster, key);
      const primary = nodeKey === undefined ? undefined : primaryOf(cluster, nodeKey);
      if (nodeKey !== undefined && primary !== undefined) {
        let isLent = false;
        const lent = (connection: Redis): Promise<T> => {
          isLent = true;
          return work(connection);
        };
        try {
          return await this.#poolOf(nodeKey, primary).run(lent);
        } catch (error) {
          // The client may not know yet that a server is gone.
          if (isLent && !isElsewhere(error)) throw error;
          failure = error;
        }
      }
      // A script, which it sends to no replica: one that reads would tell nothing of a primary that is gone.
      await cluster.eval('return 1', 1, key);
    }
    throw failure;
  }

  #poolOf(name: string, client: Redis): RedisTransactions {
    const known = this.#pools.get(name);
    if (known !== undefined) return known;
    this.#dropGone();
    const { keyPrefix } = this.#client.options;
    const pool = new RedisTransactions(client, systemClock, { keyPrefix: keyPrefix ?? '', readOnly: false });
    if (this.#isClosed) pool.close();
    this.#pools.set(name, pool);
    return pool;
  }

  /** A server that is started anew may have another address each time. What uses a connection of a former one keeps it. */
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
