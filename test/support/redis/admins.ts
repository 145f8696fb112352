import { Redis } from 'ioredis';
import { disconnectTimeout } from './client.ts';
import type { RedisServer } from './server.ts';

/** A command's name, and what it is given. */
export type Command = readonly [name: string, ...(string | number)[]];

/** Servers that are arranged together, with a client of each; a command to one that is down fails at once. */
export class RedisAdmins {
  readonly #clients: ReadonlyMap<RedisServer, Redis>;

  constructor(servers: readonly RedisServer[]) {
    this.#clients = new Map(
      servers.map((server) => {
        const client = new Redis(server.port, { retryStrategy: () => 20, maxRetriesPerRequest: 0, disconnectTimeout });
        // What is said by event is also said to each call.
        client.on('error', () => {});
        return [server, client];
      }),
    );
  }

  call(server: RedisServer, ...[name, ...rest]: Command): Promise<unknown> {
    return this.#clients.get(server)!.call(name, ...rest);
  }

  /** A server that can be reached now. */
  anyReady(): RedisServer {
    return [...this.#clients].find(([, client]) => client.status === 'ready')![0];
  }

  /** Ends the clients and the servers. */
  async stop(): Promise<void> {
    for (const client of this.#clients.values()) client.disconnect();
    await Promise.all([...this.#clients.keys()].map((server) => server.stop()));
  }
}
