import type { ChainableCommander, Redis } from 'ioredis';
import { LockConfigError, LockStoreError } from '../../model/errors.ts';
import type { ServerWarning } from '../../model/store.ts';
import { checkOptions, objectWith } from '../../model/validate.ts';
import { connectionsOf, type RedisConnections } from '../redis/cluster/cluster.ts';
import { ConnectionPool } from '../redis/connection-pool.ts';
import { redactCredentials, storeError } from '../redis/errors.ts';
import { evictionWarning } from '../redis/server-info.ts';
import type { CasAdapter, CasReading } from './adapter.ts';

/** Which server keeps the records. */
export interface RedisCasOptions {
  /** The application's ioredis client, of one server's primary. It is neither changed nor closed. */
  readonly client: Redis;
}

/**
 * A Redis server that cannot run scripts. It uses GET, SET NX, and WATCH with MULTI; the latter on connections of its own,
 * which are opened when needed. Throws `LockConfigError` for bad options.
 */
export class RedisCas implements CasAdapter {
  readonly #client: Redis;
  readonly #connections: RedisConnections;
  readonly #pool: ConnectionPool;

  constructor(options: RedisCasOptions) {
    const { client } = checkOptions(options, rules, 'RedisCas', 'client');
    if (client.isCluster)
      throw new LockConfigError('Expected a client of one Redis server, got a Cluster: use `RedisStore` for a cluster');
    this.#client = client;
    this.#connections = connectionsOf(client);
    this.#pool = new ConnectionPool(client);
  }

  async read(key: string): Promise<CasReading> {
    const [time, value] = await repliesOf(this.#client.pipeline().time().get(key));
    const [seconds, micros] = time as [string, string];
    return { value: textOf(value), nowUs: Number(seconds) * 1_000_000 + Number(micros) };
  }

  async create(key: string, value: string, ttlMs: number): Promise<boolean> {
    const epoch = this.#connections.connectionEpoch();
    const wasSentOnce = (): boolean => this.#connections.isSameEpoch(epoch);
    try {
      const reply: unknown = await this.#client.set(key, value, 'PX', ttlMs, 'NX');
      if (reply === 'OK') return true;
      // After a MULTI of the application's it is `QUEUED`.
      if (reply !== null) throw new Error('The reply is not one of SET');
      if (wasSentOnce()) return false;
    } catch (error) {
      throw storeError('create', error, wasSentOnce());
    }
    // If a connection was lost, the text that is there may be what an earlier copy of this call wrote.
    const [found] = await repliesOf(this.#client.pipeline().get(key));
    return found === value;
  }

  replace(key: string, old: string, value: string, ttlMs: number): Promise<boolean> {
    return this.#ifUnchanged(key, old, (transaction) => transaction.set(key, value, 'PX', ttlMs));
  }

  remove(key: string, old: string): Promise<boolean> {
    return this.#ifUnchanged(key, old, (transaction) => transaction.del(key));
  }

  /** Warns of a server that may evict records. */
  async warning(): Promise<ServerWarning | undefined> {
    return evictionWarning([await this.#client.info('memory')]);
  }

  /**
   * Closes its own connections: idle ones at once, the others with the call that uses them. A later call opens one again.
   * You need not call this: idle connections are closed after some seconds and do not keep the process alive.
   */
  close(): void {
    this.#pool.close();
  }

  #ifUnchanged(
    key: string,
    old: string,
    write: (transaction: ChainableCommander) => ChainableCommander,
  ): Promise<boolean> {
    let isSent = false;
    const work = this.#pool.run(async (connection) => {
      const [, found] = await repliesOf(connection.pipeline().watch(key).get(key));
      if (textOf(found) !== old) {
        await connection.unwatch();
        return false;
      }
      isSent = true;
      const replies = await write(connection.multi()).exec();
      const error = replies?.[0]?.[0];
      if (error) throw error;
      // Null: the key was touched after the WATCH.
      return replies !== null;
    });
    return work.catch((error: unknown) => {
      if (isDiscarded(error)) throw refused(error.previousErrors?.[0] ?? error);
      throw isSent ? storeError('write', error) : refused(error);
    });
  }
}

const rules = { client: objectWith('an ioredis client', 'pipeline', 'multi', 'duplicate') };

async function repliesOf(commands: ChainableCommander): Promise<unknown[]> {
  const replies = (await commands.exec()) ?? [];
  return replies.map(([error, reply]) => {
    if (error) throw redactCredentials(error);
    return reply;
  });
}

function textOf(reply: unknown): string | undefined {
  return typeof reply === 'string' ? reply : undefined;
}

/** Whether the server discarded the transaction. The reason came before, with the write. */
function isDiscarded(error: unknown): error is Error & { readonly previousErrors?: readonly Error[] } {
  return error instanceof Error && error.message.startsWith('EXECABORT');
}

function refused(cause: unknown): LockStoreError {
  return new LockStoreError('The lock store refused to write', { cause, outcome: 'not-applied' });
}
