import { EventEmitter } from 'node:events';
import { createCluster } from 'redis';
import { NodeRedisClusterDriver } from '../../../../../src/stores/redis/drivers/node-redis/cluster-driver.ts';
import type { NodeRedisCluster } from '../../../../../src/stores/redis/drivers/node-redis/cluster-nodes.ts';
import { RedisStore } from '../../../../../src/stores/redis/redis-store.ts';
import { StoreStage } from '../../../../../src/testing/contract/stage.ts';
import { startRedisCluster } from '../../../../support/redis/cluster.ts';
import type { RedisServer } from '../../../../support/redis/server.ts';

it('A client of node-redis that is closed while a store reads the slots has no connection after that', async () => {
  const cluster = await startRedisCluster();
  const client = createCluster({ rootNodes: cluster.nodes.map((socket) => ({ socket })) });
  client.on('error', () => {}); // The end of the connection on which the slots are read.
  try {
    await client.connect();
    const read = new NodeRedisClusterDriver(client as unknown as NodeRedisCluster).refresh();
    client.destroy();
    await read.catch(() => {}); // Of a client that was closed.
    const open = client.masters.filter((node) => node.client?.isOpen).map(({ address }) => address);
    expect(open).toEqual([]);
  } finally {
    await cluster.stop();
  }
}, 60_000);

describe('A client of node-redis that connects to the primaries of a cluster on demand', () => {
  it('A call finds another primary if the first one hangs', async () => {
    const cluster = await startRedisCluster();
    const rootNodes = cluster.nodes.map((socket) => ({ socket }));
    const client = createCluster({ rootNodes, minimizeConnections: true });
    client.on('error', () => {}); // The calls report it.
    const stage = new StoreStage();
    try {
      await client.connect();
      const first = cluster.servers.find(({ port }) => port === client.masters[0]?.port) as RedisServer;
      let id = 'orders:0';
      for (let n = 1; (await cluster.serversOf(`reenlock:{${id}}:lock`)).primary === first; n++) id = `orders:${n}`;
      first.pause();
      stage.store = new RedisStore({ client });
      const line = stage.deafProcess().line(undefined, { id });
      expect(await line.ask()).toMatchObject({ status: 'granted' });
      first.resume();
      await line.release();
    } finally {
      await stage.end();
      client.destroy();
      await cluster.stop();
    }
  }, 60_000);

  it('A client whose primaries are all replaced while it connects looks for the new ones', async () => {
    const nodeOf = (address: string): { address: string; client?: object } => ({ address });
    const cluster = Object.assign(new EventEmitter(), {
      isOpen: true,
      isReady: true,
      masters: [nodeOf('former')],
      nodeByAddress: new Map([['former', nodeOf('former')]]),
      slots: [],
      _slots: {
        async rediscover() {
          const node = nodeOf('new');
          Object.assign(cluster, { masters: [node], nodeByAddress: new Map([['new', node]]) });
        },
      },
      nodeClient(node: { address: string; client?: object }): Promise<unknown> {
        if (node.address === 'former') return new Promise(() => {}); // It is gone.
        node.client = Object.assign(new EventEmitter(), { isReady: true });
        cluster.emit('node-ready');
        return Promise.resolve();
      },
    });
    const driver = new NodeRedisClusterDriver(cluster as unknown as NodeRedisCluster);
    await driver.connection.connected();
    expect(driver.primaries()).toEqual(['new']);
  });
});
