import { Cluster as Cluster6 } from 'ioredis';
import { Cluster as Cluster5 } from 'ioredis5';
import { describeStoreContract, type StoreFault } from 'reenlock/testing/contract';
import { RedisStore } from '../../../../src/core/stores/redis/redis-store.ts';
import { majors } from '../../../support/majors.ts';
import { watchLeaks } from '../../../support/processes/leaks.ts';
import { disconnectTimeout } from '../../../support/redis/client.ts';
import { type RedisCluster, startRedisCluster } from '../../../support/redis/cluster.ts';
import { type ClusterOptions, connected } from '../../../support/redis/cluster-stage.ts';
import { elapseOnRedis } from '../../../support/stores/elapse.ts';

watchLeaks();

type Nodes = RedisCluster['nodes'];
type Connect = (nodes: Nodes, options: ClusterOptions) => Cluster6;

/** Each client with its way of naming keys: neither depends on the other. */
const uses = majors<readonly [version: string, keyPrefix: string, connect: Connect]>(
  [['ioredis 6', 'shop:', (nodes, options) => new Cluster6([...nodes], options)]],
  () => [['ioredis 5', '', (nodes, options) => new Cluster5([...nodes], options as object) as unknown as Cluster6]],
);

describe('on a cluster', () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await startRedisCluster();
  }, 120_000);
  afterAll(() => cluster.stop());

  for (const [version, keyPrefix, connect] of uses) {
    describe(version, () => {
      let client: Cluster6;
      let store: RedisStore;
      beforeAll(async () => {
        client = connect(cluster.nodes, { keyPrefix });
        await connected(client);
      });
      afterAll(() => client.disconnect());

      describeStoreContract({ describe, it, beforeEach, afterEach, expect }, 'RedisStore', {
        async create() {
          await cluster.callPrimaries('FLUSHALL');
          store = new RedisStore({ client });
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
        faults: faults(connect, () => cluster),
      });
    });
  }
});

function faults(connect: Connect, cluster: () => RedisCluster): StoreFault[] {
  const broken = (client: Cluster6) => {
    // What ioredis says by event it also says to each call.
    client.on('error', () => {});
    return { store: new RedisStore({ client }), close: async () => client.disconnect() };
  };
  return [
    {
      name: 'nobody listens at the ports',
      outcome: 'not-applied',
      create: async () =>
        broken(
          connect([{ host: '127.0.0.1', port: 1 }], {
            clusterRetryStrategy: () => null,
            redisOptions: { disconnectTimeout },
          }),
        ),
    },
    {
      name: 'the user has no permission',
      outcome: 'not-applied',
      async create() {
        const rights = ['+ping', '+info', '+hello', '+cluster', '+readonly', '+readwrite'];
        for (const server of cluster().servers) {
          await cluster().call(server, 'ACL', 'SETUSER', 'weak', 'on', 'nopass', '~*', ...rights);
        }
        const client = connect(cluster().nodes, { redisOptions: { username: 'weak', password: 'any' } });
        client.on('error', () => {});
        await connected(client);
        return broken(client);
      },
    },
  ];
}
