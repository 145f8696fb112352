import type { Redis } from 'ioredis';
import type { LockStoreError } from '../../model/errors.ts';
import { isCluster, nodeKeyOf, type RedisOrCluster } from './cluster/cluster.ts';
import { connectionsOf, type RedisConnections } from './connections.ts';
import { isUnknownScript, storeError } from './errors.ts';
import { type RedisWrites, writesOf } from './write-batches.ts';

/** One operation as it is sent; the generated module has them. */
export interface RedisScript {
  readonly name: string;
  readonly source: string;
  readonly sha1: string;
}

/** What scripts take, and what their answers consist of. */
export type Item = string | number;

/**
 * Runs scripts by their digests, and by their source where the server has not seen them (first use, restart, SCRIPT
 * FLUSH). Calls of one turn travel in few writes: with many at once, the writes cost more than all the rest.
 */
export class RedisScripts {
  /** The application's: never mutated, so no `defineCommand`. */
  readonly #client: Redis;
  readonly #connections: RedisConnections;
  readonly #writes: RedisWrites;
  /** The calls under way that bring a server the source of a script, and the connections that they were sent on. */
  readonly #sources = new Map<string, { readonly reply: Promise<unknown>; readonly connections: unknown }>();

  constructor(client: RedisOrCluster) {
    // What a Cluster lacks of it is the one connection.
    this.#client = client as Redis;
    this.#writes = writesOf(this.#client);
    this.#connections = connectionsOf(client);
  }

  /**
   * Answers what `read` makes of the reply. The first `keys` of `args` are the script's keys; most have two, a lock's record
   * and its queue. Rejects with a `LockStoreError`; `onRefused` is called before, where it is certain that nothing was done.
   */
  run<T>(
    script: RedisScript,
    args: readonly Item[],
    read: (reply: unknown) => T,
    keys = 2,
    onRefused?: () => void,
  ): Promise<T> {
    this.#writes.beforeCall(script.name);
    const then = this.#connections.now();
    const failed = (cause: unknown): LockStoreError => {
      // After a connection was lost, an earlier copy of the call may have been applied before this one was refused.
      const error = storeError(script.name, cause, this.#connections.areStill(then));
      if (error.outcome === 'not-applied') onRefused?.();
      return error;
    };
    const answer = (reply: unknown): T => {
      try {
        return read(replyOf(reply));
      } catch (error) {
        throw storeError(script.name, error);
      }
    };
    return this.#client.evalsha(script.sha1, keys, ...args).then(answer, (error: unknown) => {
      if (!isUnknownScript(error)) throw failed(error);
      return this.#sendUnknown(script, keys, args).then(answer, (reason: unknown) => {
        throw failed(reason);
      });
    });
  }

  /**
   * Many calls may find out at once that the server does not know their script, as after its restart: the first sends the
   * source, a dozen kilobytes, and the others wait for its answer, whatever that is, and then name the script again.
   */
  async #sendUnknown(script: RedisScript, keys: number, args: readonly Item[]): Promise<unknown> {
    const place = `${script.sha1} ${this.#serverOf(String(args[0]))}`;
    const sent = this.#sources.get(place);
    // What was sent on a connection that has ended may never be answered.
    if (sent !== undefined && this.#connections.areStill(sent.connections)) {
      await sent.reply.catch(() => undefined);
      try {
        return await this.#client.evalsha(script.sha1, keys, ...args);
      } catch (error) {
        if (!isUnknownScript(error)) throw error;
      }
    }
    const connections = this.#connections.now();
    const source = { reply: this.#client.eval(script.source, keys, ...args), connections };
    this.#sources.set(place, source);
    return source.reply.finally(() => {
      if (this.#sources.get(place) === source) this.#sources.delete(place);
    });
  }

  /** Each server of a cluster has scripts of its own, and may be the only one that does not answer. */
  #serverOf(key: string): string | undefined {
    const client = this.#client as RedisOrCluster;
    return isCluster(client) ? nodeKeyOf(client, key) : undefined;
  }
}

/** All scripts reply with a list or a number. What does not is no reply: after a MULTI of the application's, `QUEUED`. */
function replyOf(reply: unknown): unknown {
  if (Array.isArray(reply) || Number(reply ?? Number.NaN) >= 0) return reply;
  throw new Error('The answer is none of a script');
}
