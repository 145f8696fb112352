import type { Redis } from 'ioredis';
import { LockConfigError } from '../../../src/core/model/errors/mistakes.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { ioredisVersions } from '../../support/redis/ioredis.ts';
import { type RedisOptions, useRedis } from '../../support/redis/redis-stage.ts';
import { type RedisServer, startRedis } from '../../support/redis/server.ts';
import { looksOf, uses } from '../../support/stores/everything.ts';
import { until } from '../../support/until.ts';

describe("the application's client", () => {
  const stage = useRedis(['--repl-diskless-sync-delay', '0']);

  type Client = (options: RedisOptions) => Redis;
  const clients = ioredisVersions.map<[string, Client]>(([name, { Redis }]) => [
    name,
    (options) => new Redis({ port: stage.server.port, ...options }),
  ]);

  let replica: RedisServer;
  beforeAll(async () => {
    replica = await startRedis({ args: ['--replicaof', `127.0.0.1 ${stage.server.port}`] });
    await until(async () => /^slave0:.*state=online/m.test(await stage.client.info('replication')));
  });
  afterAll(() => replica.stop());

  describe.each(Object.keys(uses))('of a %s', (kind) => {
    it.each(clients)('The client is neither changed nor closed by any call (%s)', async (_, connect) => {
      const client = connect({ keyPrefix: 'app:' });
      await client.ping();
      const before = looksOf(client);
      const open = await connections();
      await uses[kind]!(stage, client);
      expect(looksOf(client)).toEqual(before);
      expect(await client.ping()).toBe('PONG');
      // What was opened beside it is closed.
      await until(async () => (await connections()).length === open.length);
      expect(await connections()).toEqual(open);
      client.disconnect();
    });
  });

  /** Who is connected, by id; without the replica. */
  async function connections(): Promise<string[]> {
    const list = (await stage.client.client('LIST', 'TYPE', 'NORMAL')) as string;
    const subscribers = (await stage.client.client('LIST', 'TYPE', 'PUBSUB')) as string;
    return `${list}${subscribers}`.match(/^id=\d+/gm) ?? [];
  }

  const protocols: Readonly<Record<string, [RedisOptions, number]>> = {
    'RESP 3, the default of ioredis 6': [{}, 3],
    'RESP 3 with its own types': [{ replyMapping: 'resp3' } as RedisOptions, 3],
    'RESP 2': [{ protocol: 2 }, 2],
  };

  describe.each(Object.keys(protocols))('speaking %s', (name) => {
    const [options, version] = protocols[name]!;

    it.each(['RedisStore', 'CasStore'])(
      'The store serves a %s, and its own connections use the same protocol',
      async (kind) => {
        const client = stage.connect(options);
        const duplicate = jest.spyOn(client, 'duplicate');
        await uses[kind]!(stage, client);
        const own = duplicate.mock.results.map(({ value }) => value as Redis);
        expect(own.length).toBeGreaterThan(0);
        const spoken = [client, ...own].map((connection) => (connection.options as { protocol?: number }).protocol);
        expect(spoken).toEqual(spoken.map(() => version));
        expect(await client.client('LIST')).toMatch(
          new RegExp(`^id=${await client.client('ID')} .* resp=${version}`, 'm'),
        );
      },
    );
  });

  it.each([
    { name: 'is lazy', options: { lazyConnect: true } },
    { name: 'pipelines by itself', options: { enableAutoPipelining: true } },
    { name: 'answers numbers as strings', options: { stringNumbers: true } },
    { name: 'has a database of its own', options: { db: 3 } },
    { name: 'has a name', options: { connectionName: 'shop' } },
    { name: 'gives up at once', options: { maxRetriesPerRequest: 0, retryStrategy: () => null } },
    { name: 'does not subscribe again by itself', options: { autoResubscribe: false } },
    { name: 'has no offline queue', options: { enableOfflineQueue: false } },
    { name: 'has a time limit for commands', options: { commandTimeout: longMs } },
  ] satisfies { name: string; options: RedisOptions }[])('The client may be one that $name', async ({ options }) => {
    const client = stage.connect(options);
    await uses.RedisStore!(stage, client);
    expect(client.status).toBe('ready');
  });

  it.each(Object.keys(uses))(
    'The client may select another database: the locks of a %s are all in that one',
    async (kind) => {
      const client = stage.connect({ db: 1 });
      for (const db of [2, 3, 1]) {
        await client.select(db);
        await uses[kind]!(stage, client);
      }
      const keyspace = (await stage.client.info('keyspace')).match(/^db\d+:keys=\d+/gm);
      expect(keyspace).toEqual(['db1:keys=1', 'db2:keys=1', 'db3:keys=1']);
    },
  );

  it.each(clients)(
    'The store reconnects with a `socketTimeout` when the connection is half-open (%s)',
    async (_, connect) => {
      const proxy = await TcpProxy.start(stage.server.port);
      const client = connect({ port: proxy.port, socketTimeout: 200 });
      client.on('error', () => {});
      await client.ping();
      proxy.halfOpen('commands');
      stage.store = new RedisStore({ client });
      expect(await stage.deafProcess().line().status()).toBe('granted');
      client.disconnect();
      await proxy.stop();
    },
  );

  it.each(clients)(
    'A tool that wraps the commands of the client sees the keys and the reply of each call (%s)',
    async (_, connect) => {
      const client = connect({ keyPrefix: 'app:' });
      const seen: { args: readonly unknown[]; reply: unknown }[] = [];
      const { sendCommand } = client;
      client.sendCommand = (command, stream) => {
        const { name, args, resolve } = command;
        command.resolve = (reply) => {
          if (name === 'evalsha') seen.push({ args, reply });
          resolve(reply);
        };
        return sendCommand.call(client, command, stream);
      };
      stage.store = new RedisStore({ client });
      const line = stage.deafProcess().line();
      await line.hold();
      await line.release();
      const names = ['lock', 'holds', 'leases', 'queue', 'waiters', 'tombstones'];
      const keys = names.map((name) => `app:reenlock:{order:42}:${name}`);
      expect(seen.slice(-2).map(({ args }) => args.slice(1, 8))).toEqual([
        [6, ...keys],
        [6, ...keys],
      ]);
      expect(seen.slice(-2).every(({ reply }) => Number(reply) > 0)).toBe(true);
      client.disconnect();
    },
  );

  it('The client may serve several stores, each with its own keys', async () => {
    const stores = ['a:', 'b:'].map((prefix) => new RedisStore({ client: stage.client, prefix }));
    for (const store of stores) {
      stage.store = store;
      await stage.deafProcess().line().hold();
    }
    expect((await stage.client.keys('*')).sort()).toEqual(['a:{order:42}:lock', 'b:{order:42}:lock']);
  });

  it.each(['{}', 'app:{}', 'a}{}{b'])(
    'A client with a key prefix like %j is refused, since it takes the hash tag from every key',
    (keyPrefix) => {
      const client = stage.connect({ keyPrefix });
      expect(() => new RedisStore({ client })).toThrow(LockConfigError);
      expect(() => new RedisStore({ client })).toThrow('free of `{}`');
    },
  );

  it.each(['a{b', 'a}b', 'a b', 'a\n', 42])('A store with a prefix like %j is refused', (prefix) => {
    expect(() => new RedisStore({ client: stage.client, prefix: prefix as string })).toThrow('Expected `prefix` to be');
  });
});
