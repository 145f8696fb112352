import { describeStoreContract } from 'reenlock/testing/contract';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import type { OpenClient } from '../../support/redis/client.ts';
import { type SentinelGroup, startSentinelGroup } from '../../support/redis/sentinel.ts';
import { sentinelLibraries } from '../../support/redis/sentinel-clients.ts';
import type { RedisServer } from '../../support/redis/server.ts';
import { elapseOnRedis } from '../../support/stores/elapse.ts';

describe('behind Sentinel', () => {
  let group: SentinelGroup;
  let primary: RedisServer;
  beforeAll(async () => {
    group = await startSentinelGroup();
    primary = await group.primary();
  }, 120_000);
  afterAll(() => group.stop());

  sentinelLibraries.forEach((library, n) => {
    describe(library.name, () => {
      let app: OpenClient;
      let store: RedisStore;
      beforeAll(async () => {
        const { name, sentinels } = group;
        app = await library.connect({ name, sentinels, keyPrefix: n % 2 === 0 ? 'shop:' : '' });
      });
      afterAll(() => app.close());

      describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'RedisStore', {
        async create() {
          await group.call(primary, 'FLUSHALL');
          store = new RedisStore({ client: app.client });
          return store;
        },
        elapse: (ms) => elapseOnRedis(ms, () => group.call(primary, 'TIME')),
        losses: [
          {
            name: 'FLUSHALL',
            async happen() {
              await group.call(primary, 'FLUSHALL');
              return store;
            },
          },
        ],
        isNode: true,
        faults: [
          {
            name: 'the user has no permission',
            outcome: 'not-applied',
            async create() {
              const rights = ['+ping', '+info', '+hello', '+client'];
              await group.call(primary, 'ACL', 'SETUSER', 'weak', 'on', 'nopass', '~*', ...rights);
              const { name, sentinels } = group;
              const weak = await library.connect({ name, sentinels, username: 'weak', password: 'any' });
              return { store: new RedisStore({ client: weak.client }), close: async () => weak.close() };
            },
          },
        ],
      });
    });
  });
});
