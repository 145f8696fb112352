import type { RedisClient } from 'reenlock/redis';
import { describeStoreContract, type StoreFault } from 'reenlock/testing/contract';
import { RedisStore } from '../../../../src/stores/redis/redis-store.ts';
import type { OpenClient } from '../../../support/redis/client.ts';
import { type RedisCluster, startRedisCluster } from '../../../support/redis/cluster.ts';
import { type ClusterLibrary, clusterLibraries } from '../../../support/redis/cluster-clients.ts';
import { elapseOnRedis } from '../../../support/stores/elapse.ts';

describe('on a cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  }, 120_000);
  afterAll(() => cluster.stop());

  // Each client with one way of naming keys: neither depends on the other.
  clusterLibraries.forEach((library, n) => {
    describe(library.name, () => {
      let app: OpenClient;
      let store: RedisStore;
      beforeAll(async () => {
        app = await library.connect({ nodes: cluster.nodes, keyPrefix: n % 2 === 0 ? 'shop:' : '' });
      });
      afterAll(() => app.close());

      describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'RedisStore', {
        async create() {
          await cluster.callPrimaries('FLUSHALL');
          store = new RedisStore({ client: app.client });
          return store;
        },
        // All the servers have one clock.
        elapse: (ms) => elapseOnRedis(ms, () => cluster.call(cluster.servers[0]!, 'TIME')),
        lacks: ['reachability'],
        losses: [
          {
            name: 'FLUSHALL on every primary',
            async happen() {
              await cluster.callPrimaries('FLUSHALL');
              return store;
            },
          },
        ],
        faults: faults(library, () => cluster),
      });
    });
  });
});

function faults(library: ClusterLibrary, cluster: () => RedisCluster): StoreFault[] {
  const broken = ({ client, close }: OpenClient) => ({
    store: new RedisStore({ client: client as RedisClient }),
    close: async () => close(),
  });
  return [
    {
      name: 'nobody listens at the ports',
      outcome: 'not-applied',
      create: async () => broken(await library.connect({ nodes: [{ host: '127.0.0.1', port: 1 }], isImpatient: true })),
    },
    {
      name: 'the user has no permission',
      outcome: 'not-applied',
      async create() {
        const rights = ['+ping', '+info', '+hello', '+cluster', '+readonly', '+readwrite', '+client'];
        for (const server of cluster().servers) {
          await cluster().call(server, 'ACL', 'SETUSER', 'weak', 'on', 'nopass', '~*', ...rights);
        }
        return broken(await library.connect({ nodes: cluster().nodes, username: 'weak', password: 'any' }));
      },
    },
  ];
}
