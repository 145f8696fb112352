import type { Cluster, Redis } from 'ioredis';
import { RedisPrimaries } from '../../../../src/stores/redis/cluster/primaries.ts';
import type { RedisConnection } from '../../../../src/stores/redis/drivers/driver.ts';
import { IoredisClusterDriver } from '../../../../src/stores/redis/drivers/ioredis/cluster-driver.ts';
import { TcpProxy } from '../../../support/processes/tcp-proxy.ts';
import { useRedis } from '../../../support/redis/redis-stage.ts';
import { until } from '../../../support/until.ts';

describe('the connections to the primaries of a cluster', () => {
  const stage = useRedis();

  /** A cluster of one server, with the address that it has at the time. */
  function clusterAt(place: { node: Redis }): Cluster {
    const cluster = {
      isCluster: true,
      options: {},
      nodes: () => [place.node],
      get slots() {
        const { host, port } = place.node.options;
        return Array.from({ length: 16_384 }, () => [`${host}:${port}`]);
      },
    };
    return cluster as unknown as Cluster;
  }

  it('Connections to a server that has another address are closed, and those in use when they are free', async () => {
    const proxies = await Promise.all([1, 2].map(() => TcpProxy.start(stage.server.port)));
    const [first, second, third] = [stage.server, ...proxies].map(({ port }) =>
      stage.connect({ host: '127.0.0.1', port, lazyConnect: true }),
    ) as [Redis, Redis, Redis];
    const opened = [first, second, third].map((node) => jest.spyOn(node, 'duplicate'));
    const place = { node: first };
    const primaries = new RedisPrimaries(new IoredisClusterDriver(clusterAt(place)));
    const lent: RedisConnection[] = [];
    const use = (connection: RedisConnection): Promise<unknown> => {
      lent.push(connection);
      return connection.send(['ping']);
    };
    await primaries.run('key', use);
    place.node = second;
    await primaries.run('key', async (connection) => {
      await until(() => !lent[0]?.isUsable);
      place.node = third;
      await primaries.run('key', use);
      expect(await use(connection)).toBe('PONG');
    });
    await until(() => !lent[2]?.isUsable);
    expect(opened.map(({ mock }) => mock.results.map(({ value }) => (value as Redis).status))).toEqual([
      ['end'],
      ['end'],
      ['ready'],
    ]);
    primaries.close();
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  });
});
