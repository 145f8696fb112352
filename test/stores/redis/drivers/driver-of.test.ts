import { createClient, createCluster, createSentinel } from 'redis';
import { createLocks, lock, runInTrace } from 'reenlock';
import { RedisCas, type RedisClient, RedisStore } from 'reenlock/redis';

describe('What is no client', () => {
  /** As @upstash/redis has it: its own properties, with methods for commands. */
  class Upstash {
    readonly opts = {};
    readonly createScript = (): void => {};
    readonly pipeline = (): void => {};
  }

  class GlideClusterClient {
    customCommand() {}
  }

  it.each<[string, unknown, string]>([
    ['nothing', undefined, 'Expected `client` to be a client of ioredis'],
    ['what has some commands alone', { evalsha() {} }, 'Expected `client` to be a client of ioredis'],
    ['a client of another library', new GlideClusterClient(), '`createCluster`, got a `GlideClusterClient`'],
    ['an array of clients', [{}, {}], 'for locks on several servers take a `QuorumStore`, with a store for each'],
    ['a promise of a client', Promise.resolve({}), 'a promise: await it first'],
    ['an address', 'redis://:secret@127.0.0.1', '`redis://…` (string): create a client with it first'],
    ['a client of @upstash/redis', new Upstash(), 'connect ioredis to the `rediss://` address of the database'],
  ])('%s is refused, and the message says what to do', (_, client, words) => {
    for (const build of [
      () => new RedisStore({ client: client as RedisClient }),
      () => new RedisCas({ client: client as RedisClient }),
    ]) {
      expect(build).toThrow(words);
      expect(build).not.toThrow('secret');
    }
  });
});

describe.each([
  ['createClient', () => createClient()],
  ['createSentinel', () => createSentinel({ name: 'main', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] })],
  ['createCluster', () => createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] })],
])('A client of node-redis by %s that nobody has connected', (_, create) => {
  it('A lock fails at once, and its error names that the client must be connected', async () => {
    const locks = createLocks({ store: new RedisStore({ client: create() as RedisClient }) });
    await expect(runInTrace(() => lock.acquire('key'), { locks })).rejects.toMatchObject({
      outcome: 'not-applied',
      cause: { message: expect.stringContaining('call `await client.connect()`') },
    });
    await locks.close({ drainMs: 0 });
  });
});
