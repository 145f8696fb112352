import { type RedisOptions as AllRedisOptions, Redis } from 'ioredis';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { disconnectTimeout } from './client.ts';
import { type RedisServer, startRedis } from './server.ts';

/** Without the one option that is declared once more by ioredis's constructor, and less loosely. */
export type RedisOptions = Omit<AllRedisOptions, 'replyMapping'>;

/** One server and one client for the tests of a `describe`, and an empty store for each. */
export class RedisStage extends StoreStage {
  #server: RedisServer | undefined;
  #client: Redis | undefined;

  get server(): RedisServer {
    return this.#server as RedisServer;
  }

  /** The application's client. */
  get client(): Redis {
    return this.#client as Redis;
  }

  /** Another client, of the test's own. */
  connect(options: RedisOptions = {}): Redis {
    return new Redis({ port: this.server.port, retryStrategy: () => 10, disconnectTimeout, ...options });
  }

  async start(args: readonly string[]): Promise<void> {
    this.#server = await startRedis({ args });
    this.#client = this.connect();
  }

  async stop(): Promise<void> {
    this.client.disconnect();
    await this.server.stop();
  }
}

/** Call it in a `describe`. */
export function useRedis(args: readonly string[] = []): RedisStage {
  const stage = new RedisStage();
  beforeAll(() => stage.start(args));
  afterAll(() => stage.stop());
  beforeEach(async () => {
    // Some servers free what was there later by default.
    await stage.client.flushall('SYNC');
    stage.store = new RedisStore({ client: stage.client });
  });
  afterEach(() => stage.end());
  return stage;
}
