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
  readonly #opened: Redis[] = [];

  get server(): RedisServer {
    return this.#server as RedisServer;
  }

  /** The application's client. */
  get client(): Redis {
    return this.#client as Redis;
  }

  /** Another client, until the test is over. What it says by event it also says to each call. */
  connect(options: RedisOptions = {}): Redis {
    const client = new Redis({ port: this.server.port, retryStrategy: () => 10, disconnectTimeout, ...options });
    client.on('error', () => {});
    this.#opened.push(client);
    return client;
  }

  /** The client of a user with all rights, but for what `less` takes away. */
  async connectAs(username: string, ...less: readonly string[]): Promise<Redis> {
    await this.client.call('ACL', 'SETUSER', username, 'reset', 'on', 'nopass', '~*', '&*', '+@all', ...less);
    return this.connect({ username, password: 'any' });
  }

  /** The connections that the server has, but for that of `client`: a line of CLIENT LIST for each. */
  async connections(): Promise<string[]> {
    const own = await this.client.client('ID');
    const lines = String(await this.client.client('LIST'))
      .trim()
      .split('\n');
    return lines.filter((line) => !line.startsWith(`id=${own} `));
  }

  /** How often the server has run a command since CONFIG RESETSTAT. */
  async calls(command = 'evalsha'): Promise<number> {
    const stats = await this.client.info('commandstats');
    return Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
  }

  /** Ends the clients of a test. */
  disconnect(): void {
    for (const client of this.#opened.splice(0)) client.disconnect();
  }

  async start(args: readonly string[]): Promise<void> {
    this.#server = await startRedis({ args });
    this.#client = this.connect();
    this.#opened.length = 0;
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
  afterEach(async () => {
    await stage.end();
    stage.disconnect();
    jest.restoreAllMocks();
  });
  return stage;
}
