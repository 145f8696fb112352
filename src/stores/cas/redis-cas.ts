import { LockStoreError } from '../../core/model/errors/failures.ts';
import { LockConfigError } from '../../core/model/errors/mistakes.ts';
import type { ServerWarning } from '../../core/model/store.ts';
import { checkOptions } from '../../core/model/validate.ts';
import { ConnectionPool } from '../redis/connection-pool.ts';
import type { RedisCommand, RedisConnection, RedisDriver, RedisReplies } from '../redis/drivers/driver.ts';
import { driverOf, type RedisClient, redisClient } from '../redis/drivers/driver-of.ts';
import { hideCommand } from '../redis/drivers/hide-command.ts';
import { connected, storeError } from '../redis/errors.ts';
import { evictionWarning } from '../redis/server-info.ts';
import type { CasAdapter, CasReading } from './adapter.ts';

/** The options of a `RedisCas`. */
export interface RedisCasOptions {
  /** The application's client, of one server's primary. It is neither changed nor closed. */
  readonly client: RedisClient;
}

/**
 * Keeps the records of a `CasStore` on a Redis server that cannot run scripts. It uses GET, SET NX, and WATCH with MULTI; for the latter
 * it opens up to four connections when it needs them. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import { Redis } from 'ioredis';
 * import { configureLocks } from 'reenlock';
 * import { CasStore, RedisCas } from 'reenlock/redis';
 *
 * const client = new Redis(process.env.REDIS_URL ?? 'redis://127.0.0.1:6379');
 * configureLocks({ store: new CasStore({ adapter: new RedisCas({ client }) }), pollMs: 100 });
 * ```
 */
export class RedisCas implements CasAdapter {
  readonly #driver: RedisDriver;
  readonly #pool: ConnectionPool;

  constructor(options: RedisCasOptions) {
    const { client } = checkOptions(options, rules, 'RedisCas', 'client');
    const driver = driverOf(client);
    if (driver.cluster !== undefined)
      throw new LockConfigError('Expected a client of one Redis server, got a Cluster: use `RedisStore` for a cluster');
    this.#driver = driver;
    this.#pool = new ConnectionPool(() => driver.createConnection() as RedisConnection);
  }

  async read(key: string): Promise<CasReading> {
    await connected(this.#driver, 'read');
    const reply = this.#driver.sendAll([['time'], ['get', key]]).then(valuesOf);
    const [time, value] = await reply.catch((error: unknown) => {
      throw storeError(this.#driver, 'read', error);
    });
    const [seconds, micros] = time as [string, string];
    return { value: textOf(value), nowUs: Number(seconds) * 1_000_000 + Number(micros) };
  }

  async create(key: string, value: string, ttlMs: number): Promise<boolean> {
    await connected(this.#driver, 'create');
    const epoch = this.#driver.connectionEpoch();
    const wasSentOnce = (): boolean => this.#driver.isSameEpoch(epoch);
    try {
      const reply = await this.#driver.send(['set', key, value, 'PX', ttlMs, 'NX']);
      if (reply === 'OK') return true;
      // After a MULTI of the application's it is `QUEUED`.
      if (reply !== null) throw new Error('The reply is not one of SET');
      if (wasSentOnce()) return false;
    } catch (error) {
      throw storeError(this.#driver, 'create', error, wasSentOnce());
    }
    // If a connection was lost, the present text may be from an earlier copy of this call.
    await connected(this.#driver, 'read');
    return (await this.#driver.send(['get', key])) === value;
  }

  replace(key: string, old: string, value: string, ttlMs: number): Promise<boolean> {
    return this.#ifUnchanged(key, old, ['set', key, value, 'PX', ttlMs]);
  }

  remove(key: string, old: string): Promise<boolean> {
    return this.#ifUnchanged(key, old, ['del', key]);
  }

  /** Warns about a server that may evict records. */
  async warning(): Promise<ServerWarning | undefined> {
    await connected(this.#driver, 'info');
    return evictionWarning([String(await this.#driver.send(['info', 'memory']))]);
  }

  /**
   * Closes its own connections: idle ones at once, the others with the call that uses them. A later call opens one again.
   * You need not call this: idle connections are closed after some seconds and do not keep the process alive.
   */
  close(): void {
    this.#pool.close();
  }

  #ifUnchanged(key: string, old: string, write: RedisCommand): Promise<boolean> {
    let isSent = false;
    const work = this.#pool.run(async (connection) => {
      const [, found] = valuesOf(
        await connection.sendAll([
          ['watch', key],
          ['get', key],
        ]),
      );
      if (textOf(found) !== old) {
        await connection.send(['unwatch']);
        return false;
      }
      isSent = true;
      return this.#isDone(await connection.sendAll([['multi'], write, ['exec']]));
    });
    return work.catch((error: unknown) => {
      if (error instanceof LockStoreError) throw error;
      throw isSent ? storeError(this.#driver, 'write', error) : this.#refused(error);
    });
  }

  /**
   * Whether a transaction of one write was done; not if the key was touched after the WATCH. Throws if the server did not
   * take the write: then it discards the transaction.
   */
  #isDone([, write, exec]: RedisReplies): boolean {
    if (exec?.status === 'fulfilled') {
      const [error] = (exec.value ?? []) as unknown[];
      if (error instanceof Error) throw error;
      return exec.value !== null;
    }
    const isDiscarded = this.#driver.codeOf(exec?.reason) === 'EXECABORT';
    if (isDiscarded) throw this.#refused(write?.status === 'rejected' ? write.reason : exec?.reason);
    throw exec?.reason;
  }

  /** The error for a write that the server certainly did not make. */
  #refused(error: unknown): LockStoreError {
    const { message, cause } = storeError(this.#driver, 'write', error);
    return new LockStoreError(message, { cause, outcome: 'not-applied' });
  }
}

const rules = { client: redisClient };

/** The replies to commands that were sent together. Throws the first error. */
function valuesOf(replies: RedisReplies): unknown[] {
  return replies.map((reply) => {
    if (reply.status === 'rejected') throw hideCommand(reply.reason);
    return reply.value;
  });
}

function textOf(reply: unknown): string | undefined {
  return typeof reply === 'string' ? reply : undefined;
}
