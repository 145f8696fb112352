import { setTimeout as sleep } from 'node:timers/promises';
import { type RedisOptions as AllRedisOptions, Redis } from 'ioredis';
import { RedisStore } from '../../../src/core/stores/redis/redis-store.ts';
import { Stage } from '../../stores/contract/stage.ts';
import { disconnectTimeout } from './client.ts';
import { type RedisServer, startRedis } from './server.ts';

/** Without the one option that is declared once more by ioredis's constructor, and less loosely. */
export type RedisOptions = Omit<AllRedisOptions, 'replyMapping'>;

/** One server and one client for the tests of a `describe`, and an empty store for each. */
export class RedisStage extends Stage {
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

const hangMs = 50_000;
/** The longest pause between two looks; after a short wait it is a tenth of that. */
const restMs = 20;

/** Waits until something holds that no event tells of; it throws rather than look for ever. */
export async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  const start = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - start;
    if (waitedMs > hangMs) throw new Error(`It did not come about: ${holds}`);
    // What is waited for may need the processor, and so may the suite beside this one.
    await sleep(Math.min(waitedMs / 10, restMs));
  }
}
