import type { Redis } from 'ioredis';
import { isUnknownScript, storeError } from './redis-errors.ts';

/** One operation as it is sent; the generated module has them. */
export interface RedisScript {
  readonly name: string;
  readonly source: string;
  readonly sha1: string;
}

/** The user's client; never mutated, so no `defineCommand`. */
export type RedisClient = Redis;

type Argument = string | number;

/**
 * Runs scripts by their digests, and by their source where the server has not seen them (first use, restart, SCRIPT
 * FLUSH). Calls of one turn travel in one write: with many at once, the writes cost more than all the rest.
 */
export class RedisScripts {
  readonly #client: RedisClient;
  #held: RedisClient['stream'] | undefined;

  constructor(client: RedisClient) {
    this.#client = client;
  }

  /** Rejects with a `LockStoreError`. */
  run<T>(
    script: RedisScript,
    keys: readonly string[],
    args: readonly Argument[],
    read: (reply: unknown) => T,
  ): Promise<T> {
    if (this.#held === undefined) this.#holdBack();
    const fail = (error: unknown): never => {
      throw storeError(script.name, error);
    };
    const answer = (reply: unknown): T => {
      try {
        return read(reply);
      } catch (error) {
        return fail(error);
      }
    };
    return this.#client.evalsha(script.sha1, keys.length, ...keys, ...args).then(answer, (error: unknown) => {
      if (!isUnknownScript(error)) return fail(error);
      return this.#client.eval(script.source, keys.length, ...keys, ...args).then(answer, fail);
    });
  }

  /**
   * Corks the connection until the end of the turn, Node's own means for this; cheaper than a pipeline by half. Before
   * there is a connection, there is nothing to hold back.
   */
  #holdBack(): void {
    const { stream } = this.#client;
    if (stream === undefined) return;
    this.#held = stream;
    stream.cork();
    process.nextTick(() => {
      this.#held = undefined;
      stream.uncork();
    });
  }
}
