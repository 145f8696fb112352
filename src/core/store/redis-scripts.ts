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

interface Call {
  readonly script: RedisScript;
  /** The number of keys, the keys, the arguments. */
  readonly args: [number, ...Argument[]];
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Runs scripts by their digests, and by their source where the server has not seen them (first use, restart, SCRIPT
 * FLUSH). Calls of one turn travel in one write: with many at once, the writes cost more than all the rest.
 */
export class RedisScripts {
  readonly #client: RedisClient;
  #turn: Call[] = [];

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
    return new Promise((resolve, reject) => {
      if (this.#turn.length === 0) process.nextTick(() => this.#send());
      const answer = (reply: unknown): void => resolve(read(reply));
      this.#turn.push({ script, args: [keys.length, ...keys, ...args], resolve: answer, reject });
    });
  }

  #send(): void {
    const calls = this.#turn;
    this.#turn = [];
    // Node's own means for this, and cheaper than a pipeline by half. Not connected: there is nothing to hold back.
    const stream = calls.length > 1 ? this.#client.stream : undefined;
    stream?.cork();
    for (const call of calls) {
      const { script, args, resolve } = call;
      this.#client.evalsha(script.sha1, ...args).then(resolve, (error: unknown) => this.#failed(call, error));
    }
    stream?.uncork();
  }

  #failed({ script, args, resolve, reject }: Call, error: unknown): void {
    if (!isUnknownScript(error)) {
      reject(storeError(script.name, error));
      return;
    }
    this.#client.eval(script.source, ...args).then(resolve, (again: unknown) => {
      reject(storeError(script.name, again));
    });
  }
}
