import type { Redis } from 'ioredis';
import type { Link, LinkWatch } from '../../../../core/base/link.ts';
import { retryMs, watchConnection } from '../connection-times.ts';
import type { RedisCommand, RedisConnection, RedisDriver, RedisSubscriber, SubscriberListener } from '../driver.ts';
import { IoredisSender, ioredisCodeOf, ioredisLink } from './calls.ts';
import { IoredisConnection } from './connection.ts';
import { sendScriptCall } from './script-call.ts';
import { IoredisSubscriber, subscriberOptions } from './subscriber.ts';
import { WriteBatcher } from './write-batches.ts';

/** A client of ioredis for one primary, standalone or behind Sentinel. */
export class IoredisDriver extends IoredisSender implements RedisDriver {
  readonly cluster = undefined;
  readonly link: Link;
  readonly connection: LinkWatch;
  readonly codeOf: (error: unknown) => string | undefined = ioredisCodeOf;
  readonly #batcher: WriteBatcher;

  constructor(client: Redis) {
    super(client);
    this.link = ioredisLink(client);
    this.connection = watchConnection(this.link);
    this.#batcher = new WriteBatcher(client);
  }

  connectionEpoch(): unknown {
    return this.client.stream;
  }

  isSameEpoch(epoch: unknown): boolean {
    return this.client.stream === epoch;
  }

  sendScript(command: RedisCommand): Promise<unknown> {
    this.#batcher.beforeCall();
    return sendScriptCall(this.client, command);
  }

  openSubscriber(listener: SubscriberListener): RedisSubscriber {
    const { client } = this;
    const retry = (attempt: number): number => {
      // The application may have changed its credentials. ioredis reads them at each connect.
      const { username, password } = client.options;
      Object.assign(connection.options, { username, password });
      return retryMs(attempt);
    };
    const connection: Redis = client.duplicate({
      ...subscriberOptions,
      retryStrategy: retry,
      sentinelRetryStrategy: retry,
    });
    return new IoredisSubscriber(connection, listener);
  }

  createConnection(): RedisConnection {
    return new IoredisConnection(this.client);
  }
}
