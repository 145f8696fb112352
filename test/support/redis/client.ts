import type { RedisClient } from 'reenlock/redis';

/** A client of an application. */
export interface OpenClient {
  readonly client: RedisClient;
  close(): Promise<void> | void;
}

/** What a client of every library is told. */
export interface ClientOptions {
  readonly keyPrefix?: string;
  readonly username?: string;
  readonly password?: string;
}

/** How an application connects, with a client library. */
export interface Library<Options extends ClientOptions, Opened> {
  readonly name: string;
  readonly hasKeyPrefix: boolean;
  connect(options: Options): Opened;
}

/**
 * For a client whose server goes away: how long ioredis waits for the end of a connection before it destroys it. It waits
 * for that of one that has ended already, too, and its default of 2 s would be what most of such a test takes.
 */
export const disconnectTimeout = 50;
