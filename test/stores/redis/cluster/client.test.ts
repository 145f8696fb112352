import fc from 'fast-check';
import { Cluster } from 'ioredis';
import { lockName } from '../../../../src/core/model/key.ts';
import type { StoreMessage } from '../../../../src/core/model/store.ts';
import { RedisStore } from '../../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../../src/testing/contract/harness.ts';
import { key } from '../../../../src/testing/contract/stage.ts';
import { readDocument } from '../../../docs/markdown.ts';
import { type ClusterOptions, connected, useCluster } from '../../../support/redis/cluster-stage.ts';
import { ioredisVersions } from '../../../support/redis/ioredis.ts';
import { clientInfoRight } from '../../../support/redis/rights.ts';
import type { RedisServer } from '../../../support/redis/server.ts';
import { looksOf, useEverything } from '../../../support/stores/everything.ts';
import { until } from '../../../support/until.ts';

const slot = `reenlock:{${key}}:lock`;

describe("the application's Cluster", () => {
  const stage = useCluster();

  async function useEverythingOf(store: RedisStore): Promise<void> {
    stage.store = store;
    await useEverything(stage);
  }

  /** Two that wait, and listen in the shard of the lock; one is there no more. */
  async function useShards(store: RedisStore): Promise<void> {
    stage.store = store;
    const [one, two] = [await stage.process(), await stage.process()];
    const lines = [one.line(), two.line(), one.line()] as const;
    await lines[0].hold();
    await lines[1].wait();
    await lines[2].wait();
    const listeners = async (server: RedisServer): Promise<unknown> =>
      stage.cluster.call(server, 'PUBSUB', 'SHARDNUMSUB', `${slot}:${two.name}`);
    const { primary } = await stage.cluster.serversOf(slot);
    await until(async () => String(await listeners(primary)).endsWith(',1'));
    await lines[1].ask();
    await two.leave();
    await until(async () => String(await listeners(primary)).endsWith(',0'));
    await lines[0].release();
    expect((await stage.order()).holds).toEqual([lines[2].holdId]);
    await lines[2].release();
    await lines[1].release();
    await stage.end();
  }

  it.each(ioredisVersions)(
    'The Cluster is neither changed nor closed by anything that a store does (%s)',
    async (_, { Cluster: Client }) => {
      const client = new Client([...stage.cluster.nodes], { keyPrefix: 'app:' });
      await connected(client);
      const before = looksOf(client);
      await useEverythingOf(new RedisStore({ client }));
      expect(looksOf(client)).toEqual(before);
      expect(await client.ping()).toBe('PONG');
      client.disconnect();
    },
  );

  it.each([
    { name: 'is lazy', options: { lazyConnect: true } },
    { name: 'pipelines by itself', options: { enableAutoPipelining: true } },
    { name: 'reads from replicas', options: { scaleReads: 'slave' } },
    { name: 'never reconnects', options: { clusterRetryStrategy: () => null } },
    { name: 'answers numbers as strings', options: { redisOptions: { stringNumbers: true } } },
    {
      name: 'has a name and a key prefix',
      options: { redisOptions: { connectionName: 'shop', keyPrefix: '{shop}:' } },
    },
    { name: 'speaks RESP 2', options: { redisOptions: { protocol: 2 } } },
    { name: 'does not subscribe again by itself', options: { redisOptions: { autoResubscribe: false } } },
  ] satisfies { name: string; options: ClusterOptions }[])('The Cluster may be one that $name', async ({ options }) => {
    for (const [, { Cluster: Client }] of ioredisVersions) {
      const client = new Client([...stage.cluster.nodes], options);
      await useEverythingOf(new RedisStore({ client }));
      expect(client.status).toBe('ready');
      client.disconnect();
    }
  });

  it('A Cluster that was closed is a LockStoreError in every call, and in the subscription', async () => {
    const client = await stage.connect({ clusterRetryStrategy: () => null });
    const store = new RedisStore({ client });
    const isEnded = new Promise((resolve) => client.once('end', resolve));
    client.disconnect();
    await isEnded;
    await expect(store.inspect(key)).rejects.toMatchObject({
      code: 'ERR_LOCK_STORE',
      outcome: 'not-applied',
    });
    await expect(store.subscribe('process', () => {})).rejects.toMatchObject({ code: 'ERR_LOCK_STORE' });
  });

  const nasty = ['a', '{', '}', '{}', '{}a', 'a{b}c', '}{', '{{b}}', '%', '%{%}', ' ', 'ключ', '🔒', '\u0000', 'a|b'];

  it.each([
    {},
    { prefix: '' },
    { prefix: 'a:b/' },
    { keyPrefix: 'shop:' },
    { keyPrefix: '{shop}:' },
    { keyPrefix: 'sh{op' },
    { keyPrefix: 'sh}op' },
  ])('All keys of a lock are on one server, whatever the key (%j)', async ({ keyPrefix = '', ...options }) => {
    const client = await stage.connect({ keyPrefix });
    stage.store = new RedisStore({ client, ...options });
    const process = stage.deafProcess();
    /** Leaves every kind of key that there is: two holds, a waiter and a release that is remembered. The server refuses keys of two slots. */
    const useEveryKey = async (id: string): Promise<void> => {
      for (const mode of ['read', 'read', 'write'] as const) await process.line(undefined, { id, mode }).ask();
      await process.line(undefined, { id }).release(longMs);
      expect(await stage.inspect(id)).toMatchObject({ holds: [{}, {}], waiters: [{}] });
    };
    for (const name of [...nasty, 'x'.repeat(300), '{'.repeat(300)]) await useEveryKey(lockName(name, 'a category').id);
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', minLength: 1, maxLength: 300 }), async (name) => {
        const { id } = lockName(name);
        if (seen.has(id)) return;
        seen.add(id);
        await useEveryKey(id);
      }),
      { numRuns: 100 },
    );
    client.disconnect();
  });

  it('Each server gets the source once for many simultaneous calls', async () => {
    const client = await stage.connect({ keyPrefix: 'app:' });
    await Promise.all(client.nodes('master').map((node) => node.ping()));
    stage.store = new RedisStore({ client });
    await stage.cluster.callPrimaries('SCRIPT', 'FLUSH');
    await stage.cluster.callPrimaries('CONFIG', 'RESETSTAT');
    const lines = Array.from({ length: 60 }, (_, i) => stage.deafProcess().line(undefined, { id: `id-${i}` }));
    await Promise.all(lines.map((line) => line.hold()));
    const sent = await Promise.all(
      stage.cluster.servers.map(async (server) => {
        const stats = await stage.info(server, 'commandstats');
        return Number(/^cmdstat_eval:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
      }),
    );
    expect(sent.filter((calls) => calls > 0)).toEqual([1, 1, 1]);
    client.disconnect();
  });

  it('The Cluster may have a user with the rights of the guide, which needs no more while a slot moves', async () => {
    const [, rights = ''] = /^ACL SETUSER \S+ on >\S+ (.*)$/m.exec(readDocument('docs/stores/redis.md')) ?? [];
    const guide = readDocument('docs/stores/redis.md');
    const [, more = ''] = /`(\+cluster\|slots [^`]*)`/.exec(guide) ?? [];
    const [, shards = ''] = /`(\+ssubscribe [^`]*)`/.exec(guide) ?? [];
    const also = clientInfoRight(await stage.info(stage.cluster.servers[0]!, 'server'));
    const named = `${rights} ${more} ${shards}`.split(/\s+/);
    const user = ['ACL', 'SETUSER', 'locks', 'on', '>secret', ...named, ...also] as const;
    for (const server of stage.cluster.servers) await stage.cluster.call(server, ...user);
    const client = await stage.connect({ redisOptions: { username: 'locks', password: 'secret' } });
    await useShards(new RedisStore({ client }));
    await useEverythingOf(new RedisStore({ client }));
    const line = stage.deafProcess().line();
    let asked: ReturnType<typeof line.ask> | undefined;
    await stage.cluster.moveSlot(slot, await stage.elsewhere(slot), async () => {
      await stage.cluster.callPrimaries('FLUSHALL');
      asked = line.ask();
      await until(async () => {
        const infos = await Promise.all(stage.cluster.servers.map((server) => stage.info(server, 'commandstats')));
        return infos.some((info) => /^cmdstat_asking/m.test(info));
      });
    });
    expect((await asked)?.status).toBe('granted');
    for (const server of stage.cluster.servers) expect(await stage.cluster.call(server, 'ACL', 'LOG')).toEqual([]);
    client.disconnect();
  });

  it('A listing may be the first call on a lazy Cluster', async () => {
    await stage.deafProcess().line().hold();
    const client = new Cluster([...stage.cluster.nodes], { lazyConnect: true });
    const store = new RedisStore({ client });
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await store.list({ idPrefix: '', limit: 100, cursor });
      ids.push(...page.locks.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(ids).toEqual([key]);
    client.disconnect();
  });

  it('One primary among all that may evict locks causes a warning', async () => {
    const { primary } = await stage.cluster.serversOf('{a}');
    await stage.cluster.call(primary, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru');
    // Which server the client asks first is up to it.
    const other = stage.cluster.servers.find(({ port }) => port !== primary.port)!;
    jest.spyOn(stage.client, 'info').mockResolvedValueOnce(await stage.info(other, 'all'));
    const warned = new Promise<StoreMessage>((resolve) => {
      const listen = (message: StoreMessage) => message.kind === 'warning' && resolve(message);
      void stage.store.subscribe('process', listen).then((end) => warned.then(end));
    });
    expect(await warned).toMatchObject({ code: 'LOCK_EVICTION', message: expect.stringContaining('`allkeys-lru`') });
    await stage.cluster.call(primary, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
  });
});
