import { once } from 'node:events';
import Redis from 'ioredis';
import { MemoryStore } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { disconnectTimeout } from '../redis/client.ts';
import { type RedisServer, startRedis } from '../redis/server.ts';
import { bare } from './bare-app.ts';
import type { App } from './frameworks.ts';
import { ServerStage, type ServerStageOptions } from './server-stage.ts';

/** Starts a service: a server with `Locks` of its own, as in a process of its own. */
export type StartService = (
  build: (app: App, stage: ServerStage) => unknown,
  options?: ServerStageOptions,
) => Promise<ServerStage>;

/** Runs tests with services that share a store in memory, and with services that share a Redis. All of them end after each test. */
export function describeServices(name: string, body: (start: StartService) => void): void {
  describe(`${name} (locks in memory)`, () => {
    let store: MemoryStore;
    beforeEach(() => {
      store = new MemoryStore();
    });
    afterEach(ServerStage.endAll);
    body((build, options) => ServerStage.start(bare, build, { store, ...options }));
  });

  describe(`${name} (locks in Redis)`, () => {
    let redis: RedisServer;
    const clients: Redis[] = [];
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterEach(async () => {
      await ServerStage.endAll();
      const ended = clients.map((client) => once(client, 'end'));
      for (const client of clients.splice(0)) client.disconnect();
      await Promise.all(ended);
    });
    afterAll(() => redis.stop());
    body((build, options) => {
      const client = new Redis(redis.url, { disconnectTimeout });
      clients.push(client);
      return ServerStage.start(bare, build, { store: new RedisStore({ client }), ...options });
    });
  });
}

/** Calls a service, which must succeed, and returns the JSON that it sends. */
export async function called<T>(
  service: ServerStage,
  path: string,
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<T> {
  const url = `http://127.0.0.1:${service.port}${path}`;
  const response = await fetch(url, signal === undefined ? { headers } : { headers, signal });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path} of the service failed: ${response.status} ${text}`);
  return JSON.parse(text) as T;
}

/** A number that code changes as it must only do alone: it reads, does something meanwhile, and writes. */
export class Balance {
  #value: number;

  constructor(value: number) {
    this.#value = value;
  }

  get value(): number {
    return this.#value;
  }

  async add(amount: number, meanwhile: () => PromiseLike<unknown>): Promise<void> {
    const read = this.#value;
    await meanwhile();
    this.#value = read + amount;
  }
}
