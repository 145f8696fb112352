import type { Link, LinkWatch } from '../../../../core/base/link.ts';
import { ClientLink } from '../client-link.ts';
import { watchConnection } from '../connection-times.ts';
import type { RedisConnection, RedisDriver, RedisSubscriber, SubscriberListener } from '../driver.ts';
import { type NodeRedisClient, NodeRedisSender, nodeRedisCodeOf } from './calls.ts';
import { NodeRedisConnection } from './connection.ts';
import { NodeRedisSubscriber } from './subscriber.ts';

/** A client of node-redis for one primary. */
export class NodeRedisDriver extends NodeRedisSender implements RedisDriver {
  readonly cluster = undefined;
  readonly link: Link;
  readonly connection: LinkWatch;
  readonly codeOf: (error: unknown) => string | undefined = nodeRedisCodeOf;

  constructor(client: NodeRedisClient) {
    super(client);
    this.link = new ClientLink(client, () => (client.isReady ? 'up' : client.isOpen ? 'down' : 'ended'));
    this.connection = watchConnection(this.link);
  }

  connectionEpoch(): unknown {
    return this.client.socketEpoch;
  }

  /** When a connection is lost, node-redis rejects all commands on it, and never sends them again. */
  isSameEpoch(): boolean {
    return true;
  }

  openSubscriber(listener: SubscriberListener): RedisSubscriber {
    return new NodeRedisSubscriber({ next: () => this.client, isCurrent: () => true }, listener);
  }

  createConnection(): RedisConnection {
    return new NodeRedisConnection(this.client);
  }
}
