import type { Cluster, Redis } from 'ioredis';
import { IoredisClusterDriver } from '../../../../../src/stores/redis/drivers/ioredis/cluster-driver.ts';

/** A cluster's client, as far as connections go. */
function clusterOf(...streams: unknown[]) {
  let nodes = streams.map((stream) => ({ stream }) as unknown as Redis);
  const client = { isCluster: true, nodes: () => [...nodes] } as unknown as Cluster;
  return {
    client,
    reconnect: (index: number) => Object.assign(nodes[index]!, { stream: {} }),
    replace: (index: number, stream: unknown) => {
      nodes = nodes.with(index, { stream } as unknown as Redis);
    },
    remove: (index: number) => {
      nodes = nodes.toSpliced(index, 1);
    },
    add: (stream: unknown) => {
      nodes = [...nodes, { stream } as unknown as Redis];
    },
  };
}

describe('The connections of a cluster', () => {
  it('The connections are the same while nothing happens to any of them', () => {
    const { client } = clusterOf({}, {}, undefined);
    const connections = new IoredisClusterDriver(client);
    expect(connections.isSameEpoch(connections.connectionEpoch())).toBe(true);
  });

  it.each<[string, (cluster: ReturnType<typeof clusterOf>) => void]>([
    ['one was lost and opened again', (cluster) => cluster.reconnect(1)],
    ['one that was not open is', (cluster) => cluster.reconnect(2)],
    ['a server went', (cluster) => cluster.remove(0)],
    ['the last server went', (cluster) => cluster.remove(2)],
    ['a server came', (cluster) => cluster.add(undefined)],
    ['a server that had none was replaced by one that has none', (cluster) => cluster.replace(2, undefined)],
  ])('The connections are others when %s', (_, happen) => {
    const cluster = clusterOf({}, {}, undefined);
    const connections = new IoredisClusterDriver(cluster.client);
    const then = connections.connectionEpoch();
    happen(cluster);
    expect(connections.isSameEpoch(then)).toBe(false);
    expect(connections.isSameEpoch(connections.connectionEpoch())).toBe(true);
  });
});
