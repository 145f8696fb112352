import type { Link, LinkWatch } from '../../../../core/base/link.ts';
import { ClientLink } from '../client-link.ts';
import { watchConnection } from '../connection-times.ts';
import {
  NotSentError,
  type RedisCommand,
  type RedisConnection,
  type RedisDriver,
  type RedisReplies,
  type RedisSubscriber,
  type SubscriberListener,
} from '../driver.ts';
import { type NodeRedisClient, NodeRedisSender, nodeRedisCodeOf } from './calls.ts';
import { NodeRedisConnection } from './connection.ts';
import { type NodeRedisSentinel, SentinelPrimary } from './sentinel-primary.ts';
import { NodeRedisSubscriber } from './subscriber.ts';

/** A client of node-redis for the primary behind Sentinel. It sends on the connection that the client has to the primary. */
export class NodeRedisSentinelDriver implements RedisDriver {
  readonly cluster = undefined;
  readonly keyPrefix: string;
  readonly link: Link;
  readonly connection: LinkWatch;
  readonly codeOf: (error: unknown) => string | undefined = nodeRedisCodeOf;
  readonly #primary: SentinelPrimary;

  constructor(client: NodeRedisSentinel) {
    const primary = new SentinelPrimary(client);
    this.keyPrefix = String(client._keyPrefix ?? '');
    this.link = new ClientLink(primary.events, () => primary.state, primary.find);
    this.connection = watchConnection(this.link);
    this.#primary = primary;
  }

  /** Two primaries may have had as many connections. */
  connectionEpoch(): unknown {
    const { connection, count } = this.#primary;
    return connection && `${count} ${connection.socketEpoch}`;
  }

  /** When a connection is lost, node-redis rejects all commands on it. Only calls on the client itself are sent again. */
  isSameEpoch(): boolean {
    return true;
  }

  async send(command: RedisCommand): Promise<unknown> {
    return this.#sender.send(command);
  }

  async sendAll(commands: readonly RedisCommand[]): Promise<RedisReplies> {
    return this.#sender.sendAll(commands);
  }

  openSubscriber(listener: SubscriberListener): RedisSubscriber {
    const primary = this.#primary;
    const next = (): NodeRedisClient | undefined => {
      primary.find();
      return primary.connection;
    };
    return new NodeRedisSubscriber({ next, isCurrent: (origin) => origin === primary.connection }, listener);
  }

  createConnection(): RedisConnection {
    return new NodeRedisConnection(this.#connected, this.keyPrefix);
  }

  get #sender(): NodeRedisSender {
    return new NodeRedisSender(this.#connected, this.keyPrefix);
  }

  get #connected(): NodeRedisClient {
    const { connection } = this.#primary;
    if (!connection?.isReady) throw new NotSentError('The client has no connection to the primary');
    return connection;
  }
}
