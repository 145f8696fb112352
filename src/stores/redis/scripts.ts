import type { LockStoreError } from '../../core/model/errors/failures.ts';
import type { RedisCommand, RedisDriver, RedisSender } from './drivers/driver.ts';
import { connected, storeError } from './errors.ts';

/** The script of one operation. The generated module has all of them. */
export interface RedisScript {
  readonly name: string;
  readonly source: string;
  readonly sha1: string;
}

/** An argument of a script, or a part of its reply. */
export type Item = string | number;

/**
 * Runs scripts by their digests, and by their source if the server does not know them (at first use, after a restart or
 * SCRIPT FLUSH). The calls of one round go into few writes: under load, writes cost more than everything else.
 */
export class RedisScripts {
  readonly #driver: RedisDriver;
  /** A separate connection, instead of the client. */
  readonly #own: RedisSender | undefined;
  /** The pending calls that send the source of a script to a server, and the connections that they were sent on. */
  readonly #sources = new Map<string, { readonly reply: Promise<unknown>; readonly epoch: unknown }>();

  constructor(driver: RedisDriver, own?: RedisSender) {
    this.#driver = driver;
    this.#own = own;
  }

  /**
   * Runs a script and returns its reply, parsed by `read`. Rejects with a `LockStoreError`. `onRefused` is called first if the call certainly did nothing.
   */
  run<T>(
    script: RedisScript,
    keys: readonly string[],
    args: readonly Item[],
    read: (reply: unknown) => T,
    onRefused?: () => void,
  ): Promise<T> {
    if (!this.isConnected)
      return connected(this.#driver, script.name).then(() => this.run(script, keys, args, read, onRefused));
    const epoch = this.#driver.connectionEpoch();
    const failed = (cause: unknown): LockStoreError => {
      // If a connection was lost, an earlier copy of the call may have been applied before this one was refused.
      const error = storeError(this.#driver, script.name, cause, this.#isSameEpoch(epoch));
      if (error.outcome === 'not-applied') onRefused?.();
      return error;
    };
    const onReply = (reply: unknown): T => {
      try {
        return read(replyOf(reply));
      } catch (error) {
        throw storeError(this.#driver, script.name, error);
      }
    };
    return this.#sendKnown(script, keys, args).then(onReply, (error: unknown) => {
      if (!this.#isUnknown(error)) throw failed(error);
      return this.#sendUnknown(script, keys, args).then(onReply, (reason: unknown) => {
        throw failed(reason);
      });
    });
  }

  /** Whether a call is written now. A separate connection is always open. */
  get isConnected(): boolean {
    return this.#own !== undefined || this.#driver.link.isUp;
  }

  /**
   * Runs a script that the server does not know. After a restart this happens to many calls at once: the first sends the source,
   * which is a dozen kilobytes. The others wait until that call has settled, and then send the digest again.
   */
  async #sendUnknown(script: RedisScript, keys: readonly string[], args: readonly Item[]): Promise<unknown> {
    // Each server of a cluster has its own scripts.
    const place = `${script.sha1} ${this.#driver.cluster?.primaryOf(keys[0] as string)}`;
    const sent = this.#sources.get(place);
    // A call on a connection that has ended may never settle.
    if (sent !== undefined && this.#isSameEpoch(sent.epoch)) {
      await sent.reply.catch(() => undefined);
      if (!this.isConnected) throw this.#driver.connection.error;
      try {
        return await this.#sendKnown(script, keys, args);
      } catch (error) {
        if (!this.#isUnknown(error)) throw error;
      }
    }
    if (!this.isConnected) throw this.#driver.connection.error;
    const epoch = this.#driver.connectionEpoch();
    const source = {
      reply: (this.#own ?? this.#driver).send(['eval', script.source, keys.length, ...keys, ...args]),
      epoch,
    };
    this.#sources.set(place, source);
    return source.reply.finally(() => {
      if (this.#sources.get(place) === source) this.#sources.delete(place);
    });
  }

  #sendKnown({ sha1 }: RedisScript, keys: readonly string[], args: readonly Item[]): Promise<unknown> {
    const command: RedisCommand = ['evalsha', sha1, keys.length, ...keys, ...args];
    const sender = this.#own ?? this.#driver;
    return sender.sendScript?.(command) ?? sender.send(command);
  }

  /** A separate connection is the same until its end. */
  #isSameEpoch(epoch: unknown): boolean {
    return this.#own !== undefined || this.#driver.isSameEpoch(epoch);
  }

  #isUnknown(error: unknown): boolean {
    return this.#driver.codeOf(error) === 'NOSCRIPT';
  }
}

/** Every script replies with a list or a number. After MULTI, for example, the reply is `QUEUED`, and no script's. */
function replyOf(reply: unknown): unknown {
  if (Array.isArray(reply) || Number(reply ?? Number.NaN) >= 0) return reply;
  throw new Error('The reply is not one of a script');
}
