import type { Cluster, Redis } from 'ioredis';
import type { StoreMessage } from '../../../../src/core/model/store.ts';
import { RedisChannel } from '../../../../src/stores/redis/channel.ts';
import { driverOf } from '../../../../src/stores/redis/drivers/driver-of.ts';
import { RedisStore } from '../../../../src/stores/redis/redis-store.ts';
import { ManualClock } from '../../../support/clock/manual-clock.ts';
import { clusterLibraries, clusterLibrariesForFaults } from '../../../support/redis/cluster-clients.ts';
import { useCluster } from '../../../support/redis/cluster-stage.ts';
import type { RedisServer } from '../../../support/redis/server.ts';
import { until } from '../../../support/until.ts';

jest.setTimeout(120_000);

describe('The channel of a store on a cluster', () => {
  const stage = useCluster();
  const channel = 'reenlock:{grants}:process';

  /** Those that have a subscriber of the channel. */
  async function subscribed(): Promise<RedisServer[]> {
    const counts = await Promise.all(
      stage.cluster.servers.map((server) =>
        stage.cluster.call(server, 'PUBSUB', 'NUMSUB', channel).catch(() => ['', 0]),
      ),
    );
    return stage.cluster.servers.filter((_, i) => (counts[i] as [string, number])[1] > 0);
  }

  function collector() {
    const messages: StoreMessage[] = [];
    return {
      messages,
      listen: (message: StoreMessage) => void messages.push(message),
      has: (kind: StoreMessage['kind'], count = 1) =>
        until(() => messages.filter((message) => message.kind === kind).length >= count),
    };
  }

  it('The channel stays on its server if the client knows no server at all for a while', async () => {
    const clock = new ManualClock();
    const { listen, messages, has } = collector();
    const redisChannel = new RedisChannel(driverOf(stage.client), 'reenlock:{grants}:', clock);
    const end = await redisChannel.subscribe('process', listen);
    await has('resubscribed');
    const nodes = jest.spyOn(stage.client, 'nodes').mockReturnValue([]);
    await clock.advance(5_000);
    nodes.mockRestore();
    // Answered after the ping.
    await (await redisChannel.subscribe('another', () => {}))();
    expect(messages.map(({ kind }) => kind)).toEqual(['resubscribed']);
    await end();
  });

  it('The channel is one connection to one server, opened with the first subscription and closed with the last', async () => {
    expect(await subscribed()).toEqual([]);
    const end = await stage.store.subscribe('process', () => {});
    const [server, ...rest] = await subscribed();
    expect(rest).toEqual([]);
    await end();
    await until(async () => !/ sub=1 /.test(String(await stage.cluster.call(server!, 'CLIENT', 'LIST'))));
  });

  it('The channel is not opened any more if the client finds no server in time, and finds one later', async () => {
    const clock = new ManualClock();
    let find: (answer: string) => void = () => {};
    const ping = () => new Promise((resolve) => (find = resolve));
    let found: Redis[] = [];
    const client: Cluster = Object.create(stage.client, { nodes: { value: () => found }, ping: { value: ping } });
    const asked = new RedisChannel(driverOf(client), 'reenlock:{grants}:', clock)
      .subscribe('process', () => {})
      .catch((error: unknown) => error);
    await clock.advance(2_000);
    expect(await asked).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    found = stage.client.nodes();
    find('PONG');
    await clock.settle();
    expect(clock.timerCount).toBe(0);
    expect(await subscribed()).toEqual([]);
  });

  it.each(clusterLibraries)('With $name the channel receives what is published on any server', async (library) => {
    stage.store = new RedisStore({ client: await stage.open(library) });
    const { listen, messages, has } = collector();
    const end = await stage.store.subscribe('process', listen);
    for (const [i, server] of stage.cluster.servers.entries()) {
      await stage.cluster.call(server, 'PUBLISH', channel, `lost hold-${i}`);
    }
    await has('lost', stage.cluster.servers.length);
    expect(messages.filter(({ kind }) => kind === 'lost')).toHaveLength(stage.cluster.servers.length);
    await end();
  });

  it.each(clusterLibrariesForFaults)(
    'With $name the channel moves to another server when its own dies, reports `resubscribed`, and goes on',
    async (library) => {
      stage.store = new RedisStore({ client: await stage.open(library) });
      const { listen, has, messages } = collector();
      const end = await stage.store.subscribe('process', listen);
      await has('resubscribed');
      const [first] = await subscribed();
      await first!.kill();
      await has('resubscribed', 2);
      const [next, ...rest] = await subscribed();
      expect(rest).toEqual([]);
      expect(next).not.toBe(first);
      const others = stage.cluster.servers.filter((server) => server !== first);
      for (const server of others) await stage.cluster.call(server, 'PUBLISH', channel, 'lost hold-1');
      await has('lost', others.length);
      await end();
      await first!.restart();
      await stage.cluster.settled();
      expect(messages.filter(({ kind }) => kind === 'lost')).toHaveLength(others.length);
    },
  );

  it.each(clusterLibrariesForFaults)(
    'With $name the channel moves to another server when its own replies to no ping in time',
    async (library) => {
      const clock = new ManualClock();
      const redisChannel = new RedisChannel(driverOf(await stage.open(library)), 'reenlock:{grants}:', clock);
      const { listen, has } = collector();
      const end = await redisChannel.subscribe('process', listen);
      await has('resubscribed');
      const [first] = await subscribed();
      first!.pause();
      await clock.advance(5_000);
      await clock.advance(2_000);
      await has('resubscribed', 2);
      await end();
      first!.resume();
      await until(() => clock.timerCount === 0);
      await until(async () => (await subscribed()).length === 0);
      await stage.cluster.settled();
    },
  );

  it('The channel moves to another server when its own has left the cluster', async () => {
    const clock = new ManualClock();
    let gone: number | undefined;
    const nodes = () => stage.client.nodes().filter((node) => node.options.port !== gone);
    const client: Cluster = Object.create(stage.client, { nodes: { value: nodes } });
    const { listen, has } = collector();
    const end = await new RedisChannel(driverOf(client), 'reenlock:{grants}:', clock).subscribe('process', listen);
    await has('resubscribed');
    const [first] = await subscribed();
    await clock.advance(5_000);
    expect(await subscribed()).toEqual([first]);
    gone = first!.port;
    await clock.advance(5_000);
    await has('resubscribed', 2);
    const [next] = await subscribed();
    expect(next).not.toBe(first);
    await end();
    await until(() => clock.timerCount === 0);
    await until(async () => (await subscribed()).length === 0);
  });
});
