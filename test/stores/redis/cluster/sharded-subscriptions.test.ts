import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter, once } from 'node:events';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Cluster, Redis } from 'ioredis';
import type { StoreMessage } from '../../../../src/core/model/store.ts';
import { ShardedSubscriptions } from '../../../../src/stores/redis/cluster/sharded-subscriptions.ts';
import { slotOf } from '../../../../src/stores/redis/cluster/slots.ts';
import { IoredisClusterDriver } from '../../../../src/stores/redis/drivers/ioredis/cluster-driver.ts';
import { RedisStore } from '../../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../../src/testing/contract/harness.ts';
import { key, type Line, type Process } from '../../../../src/testing/contract/stage.ts';
import { ManualClock } from '../../../support/clock/manual-clock.ts';
import {
  type ClusterClientOptions,
  clusterLibraries,
  clusterLibrariesForFaults,
} from '../../../support/redis/cluster-clients.ts';
import { type ClusterOptions, connected, useCluster } from '../../../support/redis/cluster-stage.ts';
import { ioredisVersions } from '../../../support/redis/ioredis.ts';
import { type RedisServer, startRedis } from '../../../support/redis/server.ts';
import { until } from '../../../support/until.ts';

jest.setTimeout(120_000);

const record = `reenlock:{${key}}:lock`;

describe('Messages on a cluster', () => {
  const stage = useCluster();
  let clients: Cluster[] = [];
  afterEach(async () => {
    await stage.end();
    for (const client of clients) client.disconnect();
    clients = [];
  });

  async function use(library = clusterLibraries[0]!, options: Partial<ClusterClientOptions> = {}): Promise<void> {
    stage.store = new RedisStore({ client: await stage.open(library, options) });
  }

  const primary = async (): Promise<RedisServer> => (await stage.cluster.serversOf(record)).primary;

  /** How many connections listen in the lock's slot, on one server. */
  async function listeners(server: RedisServer, { name }: Process, keyPrefix = ''): Promise<number> {
    const reply = await stage.cluster.call(server, 'PUBSUB', 'SHARDNUMSUB', `${keyPrefix}${record}:${name}`);
    return (reply as [string, number])[1];
  }

  const listens = async (process: Process, keyPrefix = ''): Promise<void> => {
    const server = await primary();
    await until(async () => (await listeners(server, process, keyPrefix)) === 1);
  };

  /** What was published on the servers, since they began. */
  async function sent(): Promise<{ toAll: number; inShard: number }> {
    const infos = await Promise.all(stage.cluster.servers.map((server) => stage.info(server, 'commandstats')));
    const count = (name: string) => {
      const calls = new RegExp(`^cmdstat_${name}:calls=(\\d+)`, 'm');
      return infos.reduce((sum, info) => sum + Number(calls.exec(info)?.[1] ?? 0), 0);
    };
    return { toAll: count('publish'), inShard: count('spublish') };
  }

  /** Hands the lock from one to the other, who is told. */
  async function handOn(from: Line, to: Line, process: Process): Promise<void> {
    await from.release();
    expect(await process.granted(to)).toMatchObject({ isClaim: true });
  }

  it.each(clusterLibraries)(
    'Messages stay in the shard of a lock that a process listens to ($name)',
    async (library) => {
      const keyPrefix = library.hasKeyPrefix ? 'app:' : '';
      await use(library, { keyPrefix });
      const [one, two] = [await stage.process(), await stage.process()];
      const lines = [one.line(), two.line(), one.line(), two.line()] as const;
      await lines[0].hold();
      for (const line of lines.slice(1)) await line.wait();
      await listens(one, keyPrefix);
      await listens(two, keyPrefix);
      const before = await sent();
      await handOn(lines[0], lines[1], two);
      await handOn(lines[1], lines[2], one);
      await handOn(lines[2], lines[3], two);
      await stage.store.forceRelease(key, (await stage.inspect()).holds[0]!.fence);
      await until(() => two.messages.some(({ kind }) => kind === 'lost'));
      const after = await sent();
      expect({ toAll: after.toAll - before.toAll, inShard: after.inShard - before.inShard }).toEqual({
        toAll: 0,
        inShard: 4,
      });
    },
  );

  it.each([
    { name: 'subscribe in a shard', right: '-ssubscribe' },
    { name: 'publish in a shard', right: '-spublish' },
    { name: 'ask who listens in a shard', right: '-pubsub|shardnumsub' },
    { name: 'ask for the name of a server', right: '-cluster|myid' },
    { name: 'do any of it but ask who listens', right: '-ssubscribe -spublish -cluster|myid' },
  ])('Messages arrive even if the user may not $name', async ({ right }) => {
    const rights = ['reset', 'on', 'nopass', '~*', '&*', '+@all', ...right.split(' ')];
    for (const server of stage.cluster.servers) await stage.cluster.call(server, 'ACL', 'SETUSER', 'guest', ...rights);
    await use(undefined, { username: 'guest', password: 'any' });
    const [one, two] = [await stage.process(), await stage.process()];
    const lines = [one.line(), two.line(), one.line(), two.line()] as const;
    await lines[0].hold();
    await lines[1].wait();
    await lines[2].wait();
    if (!right.includes('-ssubscribe')) await listens(two);
    await lines[1].ask();
    await handOn(lines[0], lines[1], two);
    await handOn(lines[1], lines[2], one);
    // Behind a forced release nobody is passed over either.
    await lines[3].wait();
    await lines[3].ask();
    await stage.store.forceRelease(key, (await stage.inspect()).holds[0]!.fence);
    expect(await stage.order()).toEqual({ holds: [lines[3].holdId], waiters: [] });
    await two.granted(lines[3]);
  });

  it.each(clusterLibraries)(
    'Messages arrive while a slot moves and after it, and nobody is skipped ($name)',
    async (library) => {
      await use(library);
      const [one, two] = [await stage.process(), await stage.process()];
      const lines = [one.line(), two.line(), one.line(), two.line(), one.line()] as const;
      await lines[0].hold();
      // While a slot moves, only a lock with all its keys on one server can be used.
      const inner = one.line(lines[0].request.owner);
      await inner.hold();
      await inner.release();
      await one.line().release(longMs);
      for (const line of lines.slice(1)) await line.wait();
      const before = await primary();
      await Promise.all([listens(one), listens(two)]);
      // From now on the server knows that they listen there.
      for (const line of [lines[2], lines[3]]) await line.ask();
      await stage.cluster.moveSlot(record, await stage.elsewhere(record), async () => {
        await handOn(lines[0], lines[1], two);
      });
      await handOn(lines[1], lines[2], one);
      await handOn(lines[2], lines[3], two);
      // A poll says where to listen from now on.
      await lines[4].ask();
      await listens(one);
      expect(await listeners(before, one)).toBe(0);
      const { inShard } = await sent();
      await handOn(lines[3], lines[4], one);
      expect((await sent()).inShard).toBe(inShard + 1);
    },
  );

  it.each(clusterLibrariesForFaults)(
    'Messages arrive after a replica has taken over, and nobody is skipped ($name)',
    async (library) => {
      await use(library);
      const [one, two] = [await stage.process(), await stage.process()];
      const lines = [one.line(), two.line(), one.line(), two.line()] as const;
      await lines[0].hold();
      for (const line of lines.slice(1)) await line.wait();
      await Promise.all([listens(one), listens(two)]);
      for (const line of [lines[1], lines[2]]) await line.ask();
      await stage.cluster.failOver((await stage.cluster.serversOf(record)).replica);
      await handOn(lines[0], lines[1], two);
      await handOn(lines[1], lines[2], one);
      await lines[3].ask();
      await listens(two);
      await handOn(lines[2], lines[3], two);
    },
  );

  const lost = clusterLibraries.flatMap((library) => [
    [library.name, '', longMs, library] as const,
    // As behind a clock that was set back: it said already that it is live for longer than it says now.
    [library.name, ', also where it is live for longer than it says', 2 * longMs, library] as const,
  ]);

  it.each(lost)(
    'With %s no process is skipped whose connection was lost, and that has polled since%s',
    async (_, __, livenessMs, library) => {
      await use(library);
      const [one, two] = [await stage.process(), await stage.process()];
      const [holder, first, second] = [one.line(), two.line(), one.line()];
      await holder.hold();
      await first.wait();
      await second.wait();
      await listens(two);
      await first.ask({ livenessMs });
      const server = await primary();
      await stage.cluster.call(server, 'CLIENT', 'KILL', 'TYPE', 'pubsub');
      await until(async () => (await listeners(server, two)) === 0);
      expect(await first.ask()).toMatchObject({ status: 'queued' });
      await holder.release();
      // Its other connection may have been to the same server: what comes of the message is not said here.
      expect(await stage.order()).toEqual({ holds: [first.holdId], waiters: [second.holdId] });
    },
  );

  describe('A process that listened, polled again, and listens no more', () => {
    /** Two that wait behind a holder; the first is gone. */
    async function play(): Promise<{ holder: Line; dead: Line; next: Line; gone: Process; process: Process }> {
      await use();
      const [process, gone] = [await stage.process(), await stage.process()];
      const holder = process.line();
      await holder.hold();
      const dead = await gone.line().wait();
      const next = await process.line().wait();
      await Promise.all([listens(gone), listens(process)]);
      await dead.ask();
      await gone.leave();
      const server = await primary();
      await until(async () => (await listeners(server, gone)) === 0);
      return { holder, dead, next, gone, process };
    }

    it('A process that no longer listens is skipped, and keeps its place', async () => {
      const { holder, dead, next } = await play();
      await holder.release();
      expect(await stage.order()).toEqual({ holds: [next.holdId], waiters: [dead.holdId] });
    });

    it('A process that no longer listens has its turn once it polls again, listening or not', async () => {
      const { holder, dead, next, process } = await play();
      await holder.release();
      expect(await dead.ask()).toMatchObject({ status: 'queued', isNew: false });
      const last = await process.line().wait();
      await next.release();
      expect(await stage.order()).toEqual({ holds: [dead.holdId], waiters: [last.holdId] });
    });

    it('A process that no longer listens is granted in its turn if the slot has moved to a server that never knew it', async () => {
      const { holder, dead, next } = await play();
      await stage.cluster.moveSlot(record, await stage.elsewhere(record));
      await holder.release();
      expect(await stage.order()).toEqual({ holds: [dead.holdId], waiters: [next.holdId] });
    });
  });

  describe('Sharded subscriptions', () => {
    async function start(options: ClusterOptions = {}, Client = Cluster) {
      const clock = new ManualClock();
      const client = new Client([...stage.cluster.nodes], options);
      clients.push(client);
      await connected(client);
      const duplicates = client.nodes().map((node) => jest.spyOn(node, 'duplicate'));
      /** All that was sent before is answered. */
      const answered = async (): Promise<void> => {
        const opened = duplicates.flatMap(({ mock }) => mock.results).map(({ value }) => value as Redis);
        await Promise.all(opened.filter(({ status }) => status === 'ready').map((connection) => connection.ping()));
      };
      /** Time for one look, and for the answers to its pings. */
      const look = async (): Promise<void> => {
        await clock.advance(5_000);
        await answered();
      };
      const shards = shardsOf(client, clock);
      const messages: StoreMessage[] = [];
      shards.open('process', (message) => void messages.push(message));
      return { clock, answered, look, shards, messages };
    }

    async function channels(server?: RedisServer): Promise<string[]> {
      return (await stage.cluster.call(server ?? (await primary()), 'PUBSUB', 'SHARDCHANNELS')) as string[];
    }

    const name = `${record}:process`;
    const connections = async (server: RedisServer): Promise<number> =>
      String(await stage.cluster.call(server, 'CLIENT', 'LIST')).match(/ ssub=1 /g)?.length ?? 0;

    it('Sharded subscriptions share one connection a server, end when nobody waited for long, and close the connection with the last', async () => {
      const { clock, look, shards } = await start();
      const server = await primary();
      shards.listen(record, 'process', 12_000);
      // A shorter wait for the same does not shorten it.
      shards.listen(record, 'process', 1);
      shards.listen(`${record}:2`, 'process', 7_000);
      await until(async () => (await channels()).length === 2);
      expect(await stage.cluster.call(server, 'CLIENT', 'LIST')).toMatch(/ ssub=2 /);
      await look();
      await look();
      await until(async () => (await channels()).length === 1);
      expect(await channels()).toEqual([name]);
      shards.listen(record, 'process', 12_000);
      await look();
      await look();
      expect(await channels()).toEqual([name]);
      await clock.advance(5_000);
      await until(async () => (await channels()).length === 0);
      await until(async () => (await connections(server)) === 0);
      expect(clock.timerCount).toBe(0);
      shards.listen(record, 'process', 12_000);
      await until(async () => (await channels()).length === 1);
      shards.close('process');
      await until(async () => (await connections(server)) === 0);
      expect(clock.timerCount).toBe(0);
    });

    it('Sharded subscriptions of one process end without those of another, and none begins after the end', async () => {
      const { clock, shards } = await start();
      shards.open('other', () => {});
      shards.listen(record, 'process', longMs);
      shards.listen(record, 'other', longMs);
      await until(async () => (await channels()).length === 2);
      shards.close('process');
      await until(async () => (await channels()).length === 1);
      shards.listen(record, 'process', longMs);
      await stage.cluster.call(await primary(), 'PING');
      expect(await channels()).toEqual([`${record}:other`]);
      shards.close('other');
      await until(async () => (await channels()).length === 0);
      shards.listen(record, 'other', longMs);
      expect(clock.timerCount).toBe(0);
    });

    it('Sharded subscriptions, their messages and their timer belong to no request’s async context', async () => {
      const { clock, shards } = await start();
      const request = new AsyncLocalStorage<string>();
      const seen: (string | undefined)[] = [];
      shards.open('process', () => void seen.push(request.getStore()));
      const after = jest.spyOn(clock, 'after').mockImplementation(() => {
        seen.push(request.getStore());
        return { cancel: () => {}, setAwaited: () => {} };
      });
      request.run('a request', () => shards.listen(record, 'process', longMs));
      expect(after).toHaveBeenCalledTimes(1);
      await until(async () => (await channels()).length === 1);
      await stage.cluster.call(await primary(), 'SPUBLISH', name, 'lost hold-1');
      await until(() => seen.length === 2);
      expect(seen).toEqual([undefined, undefined]);
      shards.close('process');
    });

    it('Sharded subscriptions are refreshed by each reply to a waiter, for twice as long as its place may stay', async () => {
      await use();
      const listen = jest.spyOn(ShardedSubscriptions.prototype, 'listen');
      const process = await stage.process();
      const [holder, waiter] = [process.line(), process.line()];
      await holder.hold();
      expect(listen).not.toHaveBeenCalled();
      for (let asks = 1; asks <= 2; asks++) {
        await waiter.wait({ livenessMs: 7_000 });
        expect(listen).toHaveBeenCalledTimes(asks);
        expect(listen).toHaveBeenLastCalledWith(record, process.name, 14_000);
      }
      listen.mockRestore();
    });

    it('Sharded subscriptions that lose their connection report `resubscribed`, which makes all poll, and return with a later reply', async () => {
      const { clock, shards, messages } = await start();
      shards.listen(record, 'process', longMs);
      await until(async () => (await channels()).length === 1);
      await stage.cluster.call(await primary(), 'CLIENT', 'KILL', 'TYPE', 'pubsub');
      await until(() => messages.length > 0);
      expect(messages).toEqual([{ kind: 'resubscribed' }]);
      // Not at once: the server may be down.
      shards.listen(record, 'process', longMs);
      await clock.advance(9_999);
      shards.listen(record, 'process', longMs);
      await stage.cluster.call(await primary(), 'PING');
      expect(await channels()).toEqual([]);
      await clock.advance(1);
      shards.listen(record, 'process', longMs);
      await until(async () => (await channels()).length === 1);
      shards.close('process');
      await until(async () => (await channels()).length === 0);
      await until(() => clock.timerCount === 0);
    });

    it('Sharded subscriptions that a server refuses are tried again after ten seconds, and not before', async () => {
      const rights = ['reset', 'on', 'nopass', '~*', '&*', '+@all', '-ssubscribe'];
      const server = await primary();
      for (const each of stage.cluster.servers) await stage.cluster.call(each, 'ACL', 'SETUSER', 'guest', ...rights);
      const refusals = async () =>
        /cmdstat_ssubscribe:.*rejected_calls=(\d+)/.exec(await stage.info(server, 'commandstats'))?.[1];
      const before = await refusals();
      const { answered, clock, shards } = await start({ redisOptions: { username: 'guest', password: 'any' } });
      shards.listen(record, 'process', longMs);
      await until(async () => (await refusals()) !== before);
      await answered();
      await stage.cluster.call(server, 'ACL', 'SETUSER', 'guest', '+ssubscribe');
      await clock.advance(9_999);
      shards.listen(record, 'process', longMs);
      await stage.cluster.call(server, 'PING');
      expect(await channels()).toEqual([]);
      await clock.advance(1);
      shards.listen(record, 'process', longMs);
      await until(async () => (await channels()).length === 1);
      shards.close('process');
      await until(async () => (await channels()).length === 0);
    });

    it.each([
      [9_999, 1],
      [10_000, 0],
    ])('Sharded subscriptions are ten thousand at most: alongside %i others, %i more', async (others, more) => {
      const client = new Cluster([...stage.cluster.nodes], {});
      clients.push(client);
      await connected(client);
      const duplicates = client.nodes('master').map((node) => jest.spyOn(node, 'duplicate'));
      let slots: Cluster['slots'] = [];
      const cluster: Cluster = Object.create(client, { slots: { get: () => slots } });
      const clock = new ManualClock();
      const shards = shardsOf(cluster, clock);
      shards.open('process', () => {});
      for (let n = 0; n < others; n++) shards.listen(`${record}:${n}`, 'process', longMs);
      slots = client.slots;
      shards.listen(record, 'process', longMs);
      expect(duplicates.flatMap(({ mock }) => mock.calls)).toHaveLength(more);
      slots = [];
      shards.close('process');
      await until(async () => (await channels()).length === 0);
      expect(clock.timerCount).toBe(0);
    });

    it('Sharded subscriptions on a half-open connection, without a reply to a ping since the last look, are given up', async () => {
      const { clock, look, shards, messages } = await start({ redisOptions: { disconnectTimeout: 10 } });
      const server = await primary();
      shards.listen(record, 'process', longMs);
      await until(async () => (await channels()).length === 1);
      for (let i = 0; i < 3; i++) await look();
      expect(messages).toEqual([]);
      server.pause();
      await clock.advance(5_000);
      expect(messages).toEqual([]);
      await clock.advance(5_000);
      await until(() => messages.length > 0);
      server.resume();
      expect(messages).toEqual([{ kind: 'resubscribed' }]);
      shards.close('process');
      await until(async () => (await channels(server)).length === 0);
      await stage.cluster.settled();
    });

    it.each(ioredisVersions)(
      'Sharded subscriptions return after the slot has been away for a while (%s)',
      async (_, { Cluster: Client }) => {
        const { clock, shards } = await start({}, Client);
        const from = await primary();
        const to = await stage.elsewhere(record);
        shards.listen(record, 'process', longMs);
        await until(async () => (await channels()).length === 1);
        await stage.cluster.moveSlot(record, to);
        await stage.cluster.moveSlot(record, from);
        expect(await channels()).toEqual([]);
        await until(async () => {
          await clock.advance(5_000);
          shards.listen(record, 'process', longMs);
          return (await channels()).length === 1;
        });
        shards.close('process');
        await until(async () => (await channels()).length === 0);
      },
    );

    it.each(ioredisVersions)(
      'Sharded subscriptions stay if a server is called for one whose slot it has lost (%s)',
      async (_, { Cluster: Client }) => {
        const other = 'reenlock:{other}:lock';
        const from = await primary();
        if ((await stage.cluster.serversOf(other)).primary.port !== from.port)
          await stage.cluster.moveSlot(other, from);
        const { answered, look, shards } = await start({}, Client);
        shards.listen(other, 'process', longMs);
        await until(async () => (await channels(from)).length === 1);
        await stage.cluster.moveSlot(record, await stage.elsewhere(record));
        shards.listen(record, 'process', longMs);
        await answered();
        shards.listen(other, 'process', longMs);
        await look();
        await look();
        expect(await channels(from)).toEqual([`${other}:process`]);
        shards.close('process');
        await until(async () => (await channels(from)).length === 0);
      },
    );

    it('Sharded subscriptions end in time even if the slot of another one has moved meanwhile', async () => {
      const [other, kept] = ['reenlock:{other}:lock', 'reenlock:{third}:lock'] as const;
      const from = await primary();
      for (const each of [other, kept])
        if ((await stage.cluster.serversOf(each)).primary.port !== from.port) await stage.cluster.moveSlot(each, from);
      const { look, shards } = await start();
      for (const each of [record, other, kept]) shards.listen(each, 'process', 7_000);
      await until(async () => (await channels(from)).length === 3);
      await stage.cluster.moveSlot(record, await stage.elsewhere(record));
      await until(async () => (await channels(from)).length === 2);
      shards.listen(kept, 'process', longMs);
      await look();
      await look();
      await until(async () => (await channels(from)).length === 1);
      expect(await channels(from)).toEqual([`${kept}:process`]);
      shards.close('process');
      await until(async () => (await channels(from)).length === 0);
    });

    it('Sharded subscriptions move with their slot: the others stay, or return, when the server ends one of them', async () => {
      const other = 'reenlock:{other}:lock';
      const from = await primary();
      if ((await stage.cluster.serversOf(other)).primary.port !== from.port) await stage.cluster.moveSlot(other, from);
      const { answered, look, shards, messages } = await start();
      shards.listen(record, 'process', longMs);
      shards.listen(other, 'process', longMs);
      await until(async () => (await channels(from)).length === 2);
      await stage.cluster.moveSlot(record, await stage.elsewhere(record));
      await until(async () => (await channels(from)).length === 1);
      await answered();
      await look();
      await look();
      expect(await channels(from)).toEqual([`${other}:process`]);
      const client = clients[0]!;
      await client.get(record);
      shards.listen(record, 'process', longMs);
      shards.listen(other, 'process', longMs);
      await until(async () => (await channels()).length === 1);
      await stage.cluster.call(from, 'SPUBLISH', `${other}:process`, 'lost hold-1');
      await stage.cluster.call(await primary(), 'SPUBLISH', name, 'lost hold-2');
      await until(() => messages.length === 2);
      shards.close('process');
      await until(async () => (await channels()).length + (await channels(from)).length === 0);
    });
  });

  it.each(['a', '{', '}', '{}', '{}a', 'a{b}c', '}{', '{{b}}', 'a{\n}b', 'ключ', '🔒', '{}{a}', 'x'.repeat(300), ''])(
    'Sharded subscriptions use the slot that the server reports: %j',
    async (name) => {
      expect(slotOf(name)).toBe(await stage.cluster.call(stage.cluster.servers[0]!, 'CLUSTER', 'KEYSLOT', name));
    },
  );
});

describe('Messages on a cluster of servers without sharded channels', () => {
  let server: RedisServer;
  beforeAll(async () => {
    const missing = ['SPUBLISH', 'SSUBSCRIBE', 'SUNSUBSCRIBE'].flatMap((command) => ['--rename-command', command, '']);
    server = await startRedis({ args: ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1', ...missing] });
    const admin = new Redis(server.port);
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
    while (!String(await admin.cluster('INFO')).includes('cluster_state:ok'));
    admin.disconnect();
    await once(admin, 'end');
  });
  afterAll(() => server.stop());

  it('Messages arrive, and nothing fails', async () => {
    const client = new Cluster([{ host: '127.0.0.1', port: server.port }]);
    await connected(client);
    const store = new RedisStore({ client });
    const messages: StoreMessage[] = [];
    const end = await store.subscribe('two', (message) => void messages.push(message));
    const request = (process: string) => {
      return {
        id: key,
        holdId: process,
        owner: process,
        process,
        claimMs: longMs,
        mode: 'write' as const,
        priority: 0,
      };
    };
    const terms = { leaseMs: longMs, queue: true, maxWaiters: 10, livenessMs: longMs };
    expect(await store.acquire(request('one'), terms)).toMatchObject({ status: 'granted' });
    for (let poll = 0; poll < 3; poll++) {
      expect(await store.acquire(request('two'), { ...terms, livenessMs: (poll + 1) * longMs })).toMatchObject({
        status: 'queued',
      });
    }
    await store.release(request('one'), { tombstoneMs: 0 });
    await until(() => messages.some(({ kind }) => kind === 'granted'));
    expect(messages.filter(({ kind }) => kind !== 'resubscribed')).toMatchObject([{ grant: { holdId: 'two' } }]);
    await end();
    client.disconnect();
  });
});

describe('Sharded subscriptions of a cluster whose servers have another address after each restart', () => {
  it('Sharded subscriptions keep nothing of the servers that were lost', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const longHost = 'a'.repeat(10_000);
    let starts = 0;
    let connection = new EventEmitter();
    const cluster = {
      options: {},
      nodes: () => [{ options: { host: longHost, port: starts }, duplicate: () => connection }],
      get slots() {
        return new Array(16_384).fill([`${longHost}:${starts}`]);
      },
    };
    const clock = new ManualClock();
    const shards = shardsOf(cluster as unknown as Cluster, clock);
    const messages: StoreMessage[] = [];
    shards.open('process', (message) => void messages.push(message));
    const restart = async (): Promise<void> => {
      starts += 1;
      const answer = async (): Promise<void> => {};
      connection = Object.assign(new EventEmitter(), { ssubscribe: answer, ping: answer });
      shards.listen(record, 'process', longMs);
      connection.emit('end');
      await clock.advance(5_000);
    };
    await restart();
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < 1_000; i++) await restart();
    collectGarbage();
    expect(messages).toHaveLength(1_001);
    // Their names alone would be ten million.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
    shards.close('process');
    expect(clock.timerCount).toBe(0);
  });
});

function shardsOf(client: Cluster, clock: ManualClock): ShardedSubscriptions {
  const driver = new IoredisClusterDriver(client);
  return new ShardedSubscriptions(driver, driver, clock);
}
