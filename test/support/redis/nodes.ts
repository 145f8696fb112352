import { Redis, type RedisOptions } from 'ioredis';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { disconnectTimeout } from './client.ts';
import { type RedisServer, startRedis } from './server.ts';

/** A node whose server passes for an old one: a new one would have no say until it is older than the longest lease. */
export class OldRedisStore extends RedisStore {
  override async uptimeMs(): Promise<number> {
    return Number.POSITIVE_INFINITY;
  }
}

/** Servers of their own, and clients to them as one process has them. */
export class RedisNodes {
  readonly servers: RedisServer[] = [];
  readonly #clients: Redis[] = [];

  async start(count: number): Promise<void> {
    this.servers.push(...(await Promise.all(Array.from({ length: count }, () => startRedis()))));
  }

  /** Clients of every server, as another process has them. */
  connect(options: Omit<RedisOptions, 'replyMapping'> = {}): Redis[] {
    return this.servers.map(({ port }) => this.client(port, options));
  }

  client(port: number, options: Omit<RedisOptions, 'replyMapping'> = {}): Redis {
    const client = new Redis(port, { retryStrategy: () => 10, disconnectTimeout, ...options });
    // What ioredis says by event it also says to each call.
    client.on('error', () => {});
    this.#clients.push(client);
    return client;
  }

  /** Ends every client, and awaits the ends of their connections. */
  async disconnect(): Promise<void> {
    const clients = this.#clients.splice(0);
    const streams = clients.flatMap(({ stream }) => (stream === undefined || stream.closed ? [] : [stream]));
    // Not `once` of node:events: it would reject where a server is down and the connection fails meanwhile.
    const ends = streams.map((stream) => new Promise((resolve) => stream.once('close', resolve)));
    for (const client of clients) client.disconnect();
    await Promise.all(ends);
  }

  async stop(): Promise<void> {
    await this.disconnect();
    await Promise.all(this.servers.splice(0).map((server) => server.stop()));
  }
}
