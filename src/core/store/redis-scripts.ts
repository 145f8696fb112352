import type { Redis } from 'ioredis';
import { afterRound } from '../clock.ts';
import type { LockStoreError } from '../errors.ts';
import type { RedisOrCluster } from './redis-cluster.ts';
import { connectionsOf, type RedisConnections } from './redis-connections.ts';
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

/** How many calls travel in one write: the server works on the first ones while the next are made. */
const callsPerWrite = 8;

/**
 * Runs scripts by their digests, and by their source where the server has not seen them (first use, restart, SCRIPT
 * FLUSH). Calls of one turn travel in few writes: with many at once, the writes cost more than all the rest.
 */
export class RedisScripts {
  readonly #client: RedisClient;
  readonly #connections: RedisConnections;
  #held: RedisClient['stream'] | undefined;
  /** Of a turn that is over, and still corked. */
  #corked: RedisClient['stream'] | undefined;
  #canWait = false;
  #calls = 0;

  constructor(client: RedisOrCluster) {
    // What a Cluster lacks of it is the one connection: its `stream` is undefined.
    this.#client = client as RedisClient;
    this.#connections = connectionsOf(client);
  }

  /**
   * The script's keys come first, most have two: a lock's record and its queue. Rejects with a `LockStoreError`; `onRefused`
   * is called where nothing was done.
   */
  run<T>(
    script: RedisScript,
    args: readonly Argument[],
    read: (reply: unknown) => T,
    keys = 2,
    onRefused?: () => void,
  ): Promise<T> {
    this.#holdBack(script);
    const then = this.#connections.now();
    const failed = (cause: unknown): LockStoreError => {
      // After a connection was lost, an earlier copy of the call may have been applied before this one was refused.
      const error = storeError(script.name, cause, this.#connections.areStill(then));
      if (error.outcome === 'not-applied') onRefused?.();
      return error;
    };
    const answer = (reply: unknown): T => {
      try {
        return read(reply);
      } catch (error) {
        throw storeError(script.name, error);
      }
    };
    return this.#client.evalsha(script.sha1, keys, ...args).then(answer, (error: unknown) => {
      if (!isUnknownScript(error)) throw failed(error);
      return this.#client.eval(script.source, keys, ...args).then(answer, (reason: unknown) => {
        throw failed(reason);
      });
    });
  }

  /**
   * Corks the connection until the end of the turn, Node's own means for this; cheaper than a pipeline by half. The first
   * call of a turn is written at once: often it is the only one, or one that others wait for. Before there is a connection,
   * there is nothing to hold back, and the many of a cluster are left alone.
   */
  #holdBack(script: RedisScript): void {
    this.#calls += 1;
    const held = this.#held;
    if (held === undefined) this.#beginTurn();
    else if (this.#calls === 2) {
      held.cork();
      this.#canWait = script.name === 'acquire';
    } else if (this.#calls % callsPerWrite === 0) {
      held.uncork();
      held.cork();
    }
  }

  #beginTurn(): void {
    const { stream } = this.#client;
    if (stream === undefined) return;
    this.#letGo();
    this.#held = stream;
    this.#calls = 1;
    process.nextTick(() => {
      this.#held = undefined;
      if (this.#calls < 2) return;
      this.#corked = stream;
      if (this.#calls === 2 && this.#canWait) afterRound(() => this.#letGo());
      else this.#letGo();
    });
  }

  /**
   * Writes what is still held back: at the latest with the next turn's first call, or when this round of the event loop is
   * over. So long waits an acquire that comes with one other call, as when a lock is given back and its former holder asks
   * anew: written right behind the release, it would be read with that, whose answer would then wait for both.
   */
  #letGo(): void {
    this.#corked?.uncork();
    this.#corked = undefined;
  }
}
