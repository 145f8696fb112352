import type { RedisClient } from 'reenlock/redis';
import { RedisStore } from '../../../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../../../src/testing/contract/harness.ts';
import { StoreStage } from '../../../../../src/testing/contract/stage.ts';
import { startRedisCluster } from '../../../../support/redis/cluster.ts';
import { clusterLibraries } from '../../../../support/redis/cluster-clients.ts';
import { startSentinelGroup } from '../../../../support/redis/sentinel.ts';
import { sentinelLibraries } from '../../../../support/redis/sentinel-clients.ts';
import type { RedisServer } from '../../../../support/redis/server.ts';
import { until } from '../../../../support/until.ts';

jest.setTimeout(120_000);

/** Servers that are killed and started again, and a client of them. */
interface Ground {
  readonly servers: readonly RedisServer[];
  readonly client: RedisClient;
  stop(): Promise<void>;
}

const isNodeRedis = ({ name }: { name: string }): boolean => name.startsWith('node-redis');

const grounds: readonly (readonly [name: string, start: () => Promise<Ground>])[] = [
  ...sentinelLibraries.map((library) => {
    const start = async (): Promise<Ground> => {
      const group = await startSentinelGroup();
      const app = await library.connect({ name: group.name, sentinels: group.sentinels });
      const stop = async (): Promise<void> => {
        await app.close();
        await group.stop();
      };
      return { servers: group.servers, client: app.client, stop };
    };
    return [`${library.name} behind Sentinel`, start] as const;
  }),
  ...clusterLibraries.filter(isNodeRedis).map((library) => {
    const start = async (): Promise<Ground> => {
      const cluster = await startRedisCluster();
      const app = await library.connect({ nodes: cluster.nodes });
      const stop = async (): Promise<void> => {
        app.close();
        await cluster.stop();
      };
      return { servers: cluster.servers, client: app.client, stop };
    };
    return [`${library.name} in a cluster`, start] as const;
  }),
];

describe.each(grounds)('An outage of all servers, with %s', (_, start) => {
  it('A call in the outage fails as not applied and is never sent, and calls and messages go on after it', async () => {
    const ground = await start();
    const stage = new StoreStage();
    try {
      stage.store = new RedisStore({ client: ground.client });
      const [one, two] = [await stage.process(), await stage.process()];
      await one.line(undefined, { id: 'before' }).hold();
      await Promise.all(ground.servers.map((server) => server.kill()));
      await until(() => !stage.store.link?.isUp);
      const refused = one.line(undefined, { id: 'refused' });
      await expect(refused.ask()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied' });
      await Promise.all(ground.servers.map((server) => server.restart()));
      await until(() =>
        two
          .line(undefined, { id: 'after' })
          .ask()
          .then(
            ({ status }) => status === 'granted',
            () => false,
          ),
      );
      expect((await stage.store.inspect('refused')).holds).toEqual([]);
      const holder = one.line(undefined, { id: 'next' });
      await holder.hold();
      const waiter = await two.line(undefined, { id: 'next' }).wait();
      await holder.release(longMs);
      await until(() => waiter.status().then((status) => status === 'granted'));
    } finally {
      await stage.end();
      await ground.stop();
    }
  });
});
