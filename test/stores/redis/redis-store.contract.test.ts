import { Redis as Redis6 } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { describeStoreContract, type StoreFault } from 'reenlock/testing/contract';
import { RedisStore } from '../../../src/core/stores/redis/redis-store.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { disconnectTimeout } from '../../support/redis/client.ts';
import type { RedisOptions } from '../../support/redis/redis-stage.ts';
import { type RedisServer, startRedis } from '../../support/redis/server.ts';
import { elapseOnRedis } from '../../support/stores/elapse.ts';

watchLeaks();

const clients = {
  'ioredis 6': (port: number, options: RedisOptions) => new Redis6(port, options),
  'ioredis 5': (port: number, options: RedisOptions) => new Redis5(port, options as object) as unknown as Redis6,
};

/** Each client with one way of naming keys: neither depends on the other. */
const uses = [
  { version: 'ioredis 6', naming: 'its defaults', ofClient: {}, ofStore: {} },
  {
    version: 'ioredis 5',
    naming: 'a key prefix and a prefix',
    ofClient: { keyPrefix: 'shop*:' },
    ofStore: { prefix: 'locks[?]/' },
  },
] as const;

describe('on a standalone server', () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());

  for (const { version, naming, ofClient, ofStore } of uses) {
    const connect = clients[version];
    describe(`${version} with ${naming}`, () => {
      let client: Redis6;
      let store: RedisStore;
      beforeAll(() => {
        client = connect(server.port, { ...ofClient, retryStrategy: () => 10 });
      });
      afterAll(() => client.disconnect());

      describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'RedisStore', {
        async create() {
          await client.flushall();
          store = new RedisStore({ client, ...ofStore });
          return store;
        },
        elapse: (ms) => elapseOnRedis(ms, () => client.time()),
        losses: [
          {
            name: 'FLUSHALL',
            async happen() {
              await client.flushall();
              return store;
            },
          },
          {
            name: 'a restart without persistence',
            async happen() {
              await server.restart();
              return store;
            },
          },
        ],
        isNode: true,
        faults: faults(connect, () => server.port),
      });
    });
  }
});

function faults(connect: (port: number, options: RedisOptions) => Redis6, port: () => number): StoreFault[] {
  const broken = (at: number, options: RedisOptions) => {
    const client = connect(at, { maxRetriesPerRequest: 0, retryStrategy: () => 10, disconnectTimeout, ...options });
    // What ioredis says by event it also says to each call.
    client.on('error', () => {});
    return { client, store: new RedisStore({ client }), close: async () => client.disconnect() };
  };
  return [
    { name: 'nobody listens at the port', outcome: 'not-applied', create: async () => broken(1, {}) },
    {
      name: 'the user has no permission',
      outcome: 'not-applied',
      async create() {
        const admin = connect(port(), {});
        await admin.call('ACL', 'SETUSER', 'weak', 'on', 'nopass', '~*', '+ping', '+info', '+hello');
        admin.disconnect();
        const { client, ...store } = broken(port(), { username: 'weak', password: 'any' });
        // Only of what is sent once it is connected the store can tell that it was sent once.
        await client.ping();
        return store;
      },
    },
  ];
}
