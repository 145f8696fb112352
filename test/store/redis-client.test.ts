import type { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { LockConfigError } from '../../src/core/errors.ts';
import { RedisStore } from '../../src/core/store/redis-store.ts';
import { longMs } from '../contract/harness.ts';
import { key } from '../contract/stage.ts';
import { watchLeaks } from '../helpers/leaks.ts';
import { type RedisOptions, useRedis } from './redis.ts';

watchLeaks();

describe("the application's client", () => {
  const stage = useRedis();

  /** Everything of a client that somebody else might have changed. */
  function looks(client: Redis) {
    const prototype = Object.getPrototypeOf(client) as object;
    return {
      status: client.status,
      mode: client.mode,
      options: { ...client.options },
      properties: Reflect.ownKeys(client).map(String).sort(),
      prototype,
      methods: Reflect.ownKeys(prototype).map(String).sort(),
      listeners: client.eventNames().map((name) => [String(name), client.listenerCount(name)]),
      maxListeners: client.getMaxListeners(),
      scripts: { ...(client as unknown as { scriptsSet: object }).scriptsSet },
    };
  }

  async function useEverything(store: RedisStore): Promise<void> {
    stage.store = store;
    const [one, two] = [await stage.process(), await stage.process()];
    const holder = one.line();
    const { fence } = await holder.hold();
    const [first, second] = [await two.line().wait(), await one.line().wait()];
    await holder.renew(fence);
    await Promise.all([holder.release(longMs), one.line().try(), stage.inspect()]);
    await two.granted(first);
    await stage.store.forceRelease(key, (await stage.inspect()).holds[0]!.fence);
    await one.granted(second);
    await second.release();
    await stage.end();
  }

  const clients: Record<string, (options: RedisOptions) => Redis> = {
    'ioredis 6': (options) => stage.connect(options),
    'ioredis 5': (options) => new Redis5(stage.server.port, options as object) as unknown as Redis,
  };

  it.each(Object.keys(clients))('is neither changed nor closed by anything that a store does (%s)', async (version) => {
    const client = clients[version]!({ keyPrefix: 'app:' });
    await client.ping();
    const before = looks(client);
    await useEverything(new RedisStore({ client }));
    expect(looks(client)).toEqual(before);
    expect(await client.ping()).toBe('PONG');
    client.disconnect();
  });

  it.each([
    { name: 'is lazy', options: { lazyConnect: true } },
    { name: 'pipelines by itself', options: { enableAutoPipelining: true } },
    { name: 'answers numbers as strings', options: { stringNumbers: true } },
    { name: 'has a database of its own', options: { db: 3 } },
    { name: 'has a name', options: { connectionName: 'shop' } },
    { name: 'speaks RESP 2', options: { protocol: 2 } },
    { name: 'gives up at once', options: { maxRetriesPerRequest: 0, retryStrategy: () => null } },
    { name: 'does not subscribe again by itself', options: { autoResubscribe: false } },
    { name: 'has a time limit for commands', options: { commandTimeout: longMs } },
  ] satisfies { name: string; options: RedisOptions }[])('may be one that $name', async ({ options }) => {
    const client = stage.connect(options);
    await useEverything(new RedisStore({ client }));
    expect(client.status).toBe('ready');
    client.disconnect();
  });

  it('may be one without an offline queue', async () => {
    const client = stage.connect({ enableOfflineQueue: false });
    await new Promise((resolve) => client.once('ready', resolve));
    await useEverything(new RedisStore({ client }));
    client.disconnect();
  });

  it('may serve several stores, each with keys of its own', async () => {
    const stores = ['a:', 'b:'].map((prefix) => new RedisStore({ client: stage.client, prefix }));
    for (const store of stores) {
      stage.store = store;
      await stage.deafProcess().line().hold();
    }
    expect((await stage.client.keys('*')).sort()).toEqual(['a:{order:42}:lock', 'b:{order:42}:lock']);
  });

  it('is shared by stores of the same prefix: what one grants, the other knows', async () => {
    const process = await stage.process();
    const line = process.line();
    await line.hold();
    stage.store = new RedisStore({ client: stage.client });
    expect((await process.line().try()).status).toBe('refused');
  });

  it.each([undefined, null, 'redis://localhost', {}, { evalsha() {} }])(
    'must be one: %p is a LockConfigError',
    (client) => {
      expect(() => new RedisStore({ client: client as unknown as Redis })).toThrow(LockConfigError);
      expect(() => new RedisStore({ client: client as unknown as Redis })).toThrow(
        'Expected `client` to be an ioredis client',
      );
    },
  );

  it.each(['a{b', 'a}b', 'a b', 'a\n', 42])('goes with no prefix like %j', (prefix) => {
    expect(() => new RedisStore({ client: stage.client, prefix: prefix as string })).toThrow('Expected `prefix` to be');
  });
});
