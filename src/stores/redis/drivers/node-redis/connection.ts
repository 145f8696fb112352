import { inTime, systemClock } from '../../../../core/base/clock.ts';
import type { RedisCommand, RedisConnection } from '../driver.ts';
import { type NodeRedisClient, NodeRedisSender } from './calls.ts';
import { OwnClient } from './own-client.ts';

const replyTimeoutMs = 2_000;

/**
 * A new connection to the server of a node-redis client, in the database of the client's options. `keyPrefix` is that of the
 * options unless it is given.
 */
export class NodeRedisConnection extends NodeRedisSender implements RedisConnection {
  readonly #own: OwnClient;

  constructor(origin: NodeRedisClient, keyPrefix?: string) {
    const own = new OwnClient(origin, { disableOfflineQueue: true });
    // Every call rejects with the same error.
    own.client.on('error', () => {});
    super(own.client, keyPrefix);
    this.#own = own;
  }

  get isUsable(): boolean {
    return this.client.isReady;
  }

  async open(): Promise<void> {
    await this.#own.open();
  }

  /** node-redis has no time limit for a command that was written. */
  override send(command: RedisCommand): Promise<unknown> {
    return inTime(systemClock, replyTimeoutMs, super.send(command));
  }

  ref(): void {
    this.client.ref();
  }

  unref(): void {
    this.client.unref();
  }

  close(): void {
    this.#own.close();
  }
}
