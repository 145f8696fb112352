import type { Redis } from 'ioredis';
import { guarded, listenTo } from '../../../../core/base/safely.ts';
import type { RedisShard, ShardListener } from '../driver.ts';
import { subscriberOptions } from './subscriber.ts';

/** A connection of ioredis to one primary of a cluster, for the channels of its slots. */
export class IoredisShard implements RedisShard {
  readonly #connection: Redis;

  constructor(node: Redis, listener: ShardListener) {
    const connection = node.duplicate({
      ...subscriberOptions,
      // An ioredis 5 may send its ready check when a subscription has forbidden other commands already.
      enableReadyCheck: false,
      readOnly: false,
      retryStrategy: () => null,
    });
    this.#connection = connection;
    listenTo(connection, 'smessage', (channel: string, text: string) => listener.onMessage(channel, text));
    listenTo(connection, 'moved', () => listener.onMoved());
    // An old ioredis mistakes the end of a subscription for the reply to another command.
    listenTo(connection, 'error', () => connection.disconnect());
    connection.once(
      'end',
      guarded(() => listener.onClosed()),
    );
  }

  subscribe(channel: string): Promise<unknown> {
    return this.#connection.ssubscribe(channel);
  }

  unsubscribe(channel: string): Promise<unknown> {
    return this.#connection.sunsubscribe(channel);
  }

  ping(): Promise<unknown> {
    return this.#connection.ping();
  }

  close(): void {
    this.#connection.disconnect();
  }
}
