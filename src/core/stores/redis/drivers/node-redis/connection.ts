import { systemClock } from '../../../../base/clock.ts';
import type { RedisCommand, RedisConnection } from '../driver.ts';
import { type NodeRedisClient, NodeRedisSender } from './calls.ts';

const replyTimeoutMs = 2_000;

/** A connection beside a client of node-redis, in the database that the client's options name. */
export class NodeRedisConnection extends NodeRedisSender implements RedisConnection {
  constructor(origin: NodeRedisClient) {
    const { socket } = origin.options ?? {};
    const connection = origin.duplicate({
      disableOfflineQueue: true,
      pingInterval: undefined,
      socket: { ...socket, reconnectStrategy: false },
    });
    // Every call rejects with the same error.
    connection.on('error', () => {});
    super(connection);
  }

  get isUsable(): boolean {
    return this.client.isReady;
  }

  async open(): Promise<void> {
    await this.client.connect();
  }

  /** node-redis has no time limit for a command that was written. The timer is cancelled by the reply. */
  override send(command: RedisCommand): Promise<unknown> {
    const reply = super.send(command);
    return new Promise((resolve, reject) => {
      const timeout = (): void => reject(new Error(`No reply within ${replyTimeoutMs} ms`));
      const timer = systemClock.after(replyTimeoutMs, timeout);
      reply.then(resolve, reject).finally(() => timer.cancel());
    });
  }

  ref(): void {
    this.client.ref();
  }

  unref(): void {
    this.client.unref();
  }

  close(): void {
    if (this.client.isOpen) this.client.destroy();
  }
}
