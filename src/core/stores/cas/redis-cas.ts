import type { ChainableCommander, Redis } from 'ioredis';
import { LockConfigError, LockStoreError } from '../../model/errors.ts';
import { checkOptions, objectWith } from '../../model/validate.ts';
import { RedisTransactions } from '../redis/connection-pool.ts';
import { connectionsOf, type RedisConnections } from '../redis/connections.ts';
import { storeError, withoutLogin } from '../redis/errors.ts';
import { evictionWarning } from '../redis/server-info.ts';
import type { CasAdapter, CasReading, CasWarning } from './adapter.ts';

/** Which server keeps the records. */
export interface RedisCasOptions {
  /** An ioredis client of the application's, of one server's primary; it is neither changed nor closed. */
  readonly client: Redis;
}

/**
 * A Redis server that runs no scripts: GET, SET NX, and WATCH with MULTI on connections of its own, opened when they are
 * needed. Throws `LockConfigError` for bad options.
 */
export class RedisCas implements CasAdapter {
  readonly #client: Redis;
  readonly #connections: RedisConnections;
  readonly #transactions: RedisTransactions;

  constructor(options: RedisCasOptions) {
    const { client } = checkOptions(options, rules, 'RedisCas', 'client');
    if (client.isCluster)
      throw new LockConfigError('Expected a client of one Redis server, got a Cluster: it is not supported');
    this.#client = client;
    this.#connections = connectionsOf(client);
    this.#transactions = new RedisTransactions(client);
  }

  async read(key: string): Promise<CasReading> {
    const [time, value] = await answers(this.#client.pipeline().time().get(key));
    const [seconds, micros] = time as [string, string];
    return { value: textOf(value), nowUs: Number(seconds) * 1_000_000 + Number(micros) };
  }

  async create(key: string, value: string, ttlMs: number): Promise<boolean> {
    const then = this.#connections.now();
    const wasSentOnce = (): boolean => this.#connections.areStill(then);
    try {
      const answer: unknown = await this.#client.set(key, value, 'PX', ttlMs, 'NX');
      if (answer === 'OK') return true;
      // After a MULTI of the application's it is `QUEUED`.
      if (answer !== null) throw new Error('The answer is none of a SET');
      if (wasSentOnce()) return false;
    } catch (error) {
      throw storeError('create', error, wasSentOnce());
    }
    // After a connection was lost, what is in the way may be what an earlier copy of this call wrote.
    const [found] = await answers(this.#client.pipeline().get(key));
    return found === value;
  }

  replace(key: string, old: string, value: string, ttlMs: number): Promise<boolean> {
    return this.#ifUnchanged(key, old, (transaction) => transaction.set(key, value, 'PX', ttlMs));
  }

  remove(key: string, old: string): Promise<boolean> {
    return this.#ifUnchanged(key, old, (transaction) => transaction.del(key));
  }

  /** A server that may evict records can't keep locks. */
  async warning(): Promise<CasWarning | undefined> {
    return evictionWarning([await this.#client.info('memory')]);
  }

  /**
   * Closes its own connections, at once, or with the call that uses them; a later call opens one for itself. Need not be
   * called: idle ones are closed, and keep no process alive.
   */
  close(): void {
    this.#transactions.close();
  }

  #ifUnchanged(
    key: string,
    old: string,
    write: (transaction: ChainableCommander) => ChainableCommander,
  ): Promise<boolean> {
    let isSent = false;
    const work = this.#transactions.run(async (connection) => {
      const [, found] = await answers(connection.pipeline().watch(key).get(key));
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

async function answers(commands: ChainableCommander): Promise<unknown[]> {
  const replies = (await commands.exec()) ?? [];
  return replies.map(([error, answer]) => {
    if (error) throw withoutLogin(error);
    return answer;
  });
}

function textOf(answer: unknown): string | undefined {
  return typeof answer === 'string' ? answer : undefined;
}

/** The server's last word; why it refused the write, it had said before. */
function isDiscarded(error: unknown): error is Error & { readonly previousErrors?: readonly Error[] } {
  return error instanceof Error && error.message.startsWith('EXECABORT');
}

function refused(cause: unknown): LockStoreError {
  return new LockStoreError('The lock store refused to write', { cause, outcome: 'not-applied' });
}
