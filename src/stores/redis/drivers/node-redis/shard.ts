import { guarded, listenTo } from '../../../../core/base/safely.ts';
import type { RedisShard, ShardListener } from '../driver.ts';
import { type NodeRedisClient, replyOptions } from './calls.ts';
import { OwnClient, subscriberOptions } from './own-client.ts';

/** A connection of node-redis to one primary of a cluster, for the channels of its slots. */
export class NodeRedisShard implements RedisShard {
  readonly #own: OwnClient;
  readonly #onMessage: (text: string, channel: string) => void;

  constructor(node: NodeRedisClient, listener: ShardListener) {
    const own = new OwnClient(node, subscriberOptions);
    this.#own = own;
    this.#onMessage = guarded((text: string, channel: string) => listener.onMessage(channel, text));
    listenTo(own.client, 'sharded-channel-moved', () => listener.onMoved());
    let isClosed = false;
    const onClosed = guarded(() => {
      if (isClosed || own.client.isOpen) return;
      isClosed = true;
      own.close();
      listener.onClosed();
    });
    own.client.on('error', onClosed);
    own.client.on('end', onClosed);
    // It also emits this error.
    own.open().catch(() => undefined);
  }

  subscribe(channel: string): Promise<unknown> {
    return this.#own.client.sSubscribe(channel, this.#onMessage);
  }

  unsubscribe(channel: string): Promise<unknown> {
    return this.#own.client.sUnsubscribe(channel);
  }

  ping(): Promise<unknown> {
    return this.#own.client.sendCommand(['PING'], replyOptions);
  }

  close(): void {
    this.#own.close();
  }
}
