import { Redis } from 'ioredis';
import type { RedisClient } from 'reenlock/redis';
import { describeStoreContract, type StoreFault } from 'reenlock/testing/contract';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { disconnectTimeout } from '../../support/redis/client.ts';
import { type AppClient, type ClientLibrary, clientLibraries } from '../../support/redis/clients.ts';
import { type RedisServer, startRedis } from '../../support/redis/server.ts';
import { elapseOnRedis } from '../../support/stores/elapse.ts';

describe('on a standalone server', () => {
  let server: RedisServer;
  let admin: Redis;
  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.port, { retryStrategy: () => 10, disconnectTimeout });
    await admin.ping();
  });
  afterAll(async () => {
    admin.disconnect();
    await server.stop();
  });

  // Each client with one way of naming keys: neither depends on the other.
  clientLibraries.forEach((library, n) => {
    const isPrefixed = n % 2 === 1;
    const ofClient = isPrefixed && library.hasKeyPrefix ? { keyPrefix: 'shop*:' } : {};
    const ofStore = isPrefixed ? { prefix: 'locks[?]/' } : {};
    describe(`${library.name} with ${isPrefixed ? 'prefixes' : 'its defaults'}`, () => {
      let app: AppClient;
      let store: RedisStore;
      beforeAll(async () => {
        app = library.connect({ port: server.port, ...ofClient });
        await app.ready();
      });
      afterAll(() => app.close());

      describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'RedisStore', {
        async create() {
          await admin.flushall();
          store = new RedisStore({ client: app.client, ...ofStore });
          return store;
        },
        elapse: (ms) => elapseOnRedis(ms, () => admin.time()),
        losses: [
          {
            name: 'FLUSHALL',
            async happen() {
              await admin.flushall();
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
        faults: faults(library, () => server.port),
      });
    });
  });

  function faults(library: ClientLibrary, port: () => number): StoreFault[] {
    const broken = (app: AppClient) => ({
      store: new RedisStore({ client: app.client as RedisClient }),
      close: async () => app.close(),
    });
    return [
      {
        name: 'nobody listens at the port',
        outcome: 'not-applied',
        create: async () => broken(library.connect({ port: 1 })),
      },
      {
        name: 'the user has no permission',
        outcome: 'not-applied',
        async create() {
          await admin.call('ACL', 'SETUSER', 'weak', 'on', 'nopass', '~*', '+ping', '+info', '+hello', '+client');
          const app = library.connect({ port: port(), username: 'weak', password: 'any' });
          await app.ready();
          return broken(app);
        },
      },
    ];
  }
});
