import { Redis } from 'ioredis';
import { createLocks, getLock, type Hold, runInTrace } from 'reenlock';
import { RedisStore } from 'reenlock/redis';
import { clientInfoRight } from '../support/redis/rights.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { readDocument } from './markdown.ts';

describe('the Redis user of the README', () => {
  const [, name, password, rights = ''] =
    /^ACL SETUSER (\S+) on >(\S+) (.*)$/m.exec(readDocument('docs/stores/redis.md')) ?? [];
  let redis: RedisServer;
  let admin: Redis;
  let clients: Redis[] = [];
  beforeAll(async () => {
    redis = await startRedis();
    admin = new Redis(redis.url);
    const more = clientInfoRight(await admin.info('server'));
    await admin.call('ACL', 'SETUSER', name!, 'on', `>${password}`, ...rights.split(' '), ...more);
  });
  afterEach(() => {
    for (const client of clients.splice(0)) client.disconnect();
  });
  afterAll(async () => {
    await admin.quit();
    await redis.stop();
  });

  it('may run what the scripts call, and what a client and a subscription need', () => {
    const calls = readDocument('src/stores/redis/scripts.generated.ts').matchAll(
      /redis\.p?call\('([A-Z]+)'(?:, '(NUMSUB|SHARDNUMSUB|MYID)')?/g,
    );
    const called = [...calls].map(([, command, sub]) => (sub ? `${command}|${sub}` : command)?.toLowerCase());
    const [, shards = ''] = /`(\+ssubscribe [^`]*)`/.exec(readDocument('docs/stores/redis.md')) ?? [];
    const sent = ['evalsha', 'eval', 'subscribe', 'unsubscribe', 'ping', 'info', 'scan'];
    const listOf = (text: string): string[] => text.match(/(?<=\+)\S+/g) ?? [];
    const [allowed, inShards] = [listOf(rights), listOf(shards)];
    const all = new Set([...called, ...sent, 'ssubscribe', 'sunsubscribe']);
    expect([...allowed, ...inShards].sort()).toEqual([...all].sort());
    const needed = allowed.map((command) => Object.keys(since).find((version) => since[version]?.includes(command)));
    expect(needed).not.toContain(undefined);
    expect(readDocument('docs/stores/redis.md')).toContain(`Redis ${needed.sort().at(-1)} or newer`);
  });

  it('may do all that locks need, and nothing else', async () => {
    clients = [1, 2].map(() => new Redis(redis.url, { username: name!, password: password! }));
    const [one, two] = clients.map((client) => createLocks({ store: new RedisStore({ client }) }));
    const failures: unknown[] = [];
    for (const locks of [one!, two!]) locks.on('storeError', (event) => failures.push(event));

    const lock = getLock('order:42');
    let waiters = 0;
    const allWait = new Promise<void>((resolve) => {
      two!.on('waiting', () => {
        waiters += 1;
        if (waiters === 3) resolve();
      });
    });
    // Handed on from each to the next; one takes it from itself by force.
    const others = async (hold: Hold): Promise<unknown[]> => {
      const routines: (() => unknown)[] = [() => 2, () => lock.forceRelease(), () => 3];
      const runs = routines.map((run, i) => runInTrace(() => lock.run(run), { locks: two!, traceId: `other-${i}` }));
      await allWait;
      expect((await lock.inspect()).waiters).toHaveLength(3);
      expect((await one!.list({ prefix: 'order:' })).locks.map(({ key }) => key)).toEqual(['order:42']);
      await hold.extend(40_000);
      await hold.release();
      return Promise.allSettled(runs);
    };
    const results = await runInTrace(async () => others(await lock.acquire()), { locks: one! });
    expect(results).toMatchObject([{ value: 2 }, { reason: { code: 'ERR_LOCK_LOST', value: true } }, { value: 3 }]);

    expect(failures).toEqual([]);
    expect(await admin.call('ACL', 'LOG')).toEqual([]);
    await expect(clients[0]!.get('another')).rejects.toThrow(/NOPERM/);
    await expect(clients[0]!.publish('another', '1')).rejects.toThrow(/NOPERM/);
    await Promise.all([one!.close(), two!.close()]);
  });

  it('needs the right to SELECT as well for another database, and a `keyPrefix` in the pattern of its keys', async () => {
    const runOnce = async (): Promise<void> => {
      const client = new Redis(redis.url, { username: name!, password: password!, db: 1, keyPrefix: 'app:' });
      clients.push(client);
      // Of the `SELECT` that is refused.
      client.on('error', () => {});
      const locks = createLocks({ store: new RedisStore({ client }) });
      await runInTrace(() => getLock('order:44').run(() => {}), { locks });
      await locks.close();
    };
    const isIn0 = async (): Promise<boolean> => (await admin.exists('app:reenlock:{order:44}:lock')) === 1;
    await admin.call('ACL', 'SETUSER', name!, '~app:reenlock:*');
    await runOnce();
    expect(await isIn0()).toBe(true);
    await admin.call('ACL', 'SETUSER', name!, '+select');
    await admin.call('ACL', 'LOG', 'RESET');
    await admin.flushall();
    await runOnce();
    expect(await isIn0()).toBe(false);
    expect(await admin.call('ACL', 'LOG')).toEqual([]);
  });

  it('needs the right to WAIT as well where replicas must confirm, and no more', async () => {
    clients = [new Redis(redis.url, { username: name!, password: password! })];
    const store = new RedisStore({ client: clients[0]!, waitReplicas: 1 });
    const unsubscribe = await store.subscribe('process', () => {});
    const locks = createLocks({ store });
    const refusal = (): Promise<unknown> =>
      runInTrace(() => getLock('order:43').tryAcquire(), { locks }).catch((error: unknown) => error);
    await admin.call('ACL', 'LOG', 'RESET');
    expect(await refusal()).toMatchObject({ cause: { message: expect.stringContaining("'wait'") } });
    await admin.call('ACL', 'SETUSER', name!, '+wait');
    await admin.call('ACL', 'LOG', 'RESET');
    // It is asked, and there is no replica.
    expect(await refusal()).toMatchObject({ message: expect.stringContaining('but 0 did') });
    expect(await admin.call('ACL', 'LOG')).toEqual([]);
    await locks.close({ drainMs: 0 });
    await unsubscribe();
  });
});

/** Which Redis has it. All scripts read the time before they write, which is refused before 5.0. */
const since: Readonly<Record<string, readonly string[]>> = {
  '5.0': [
    ...['evalsha', 'eval', 'subscribe', 'unsubscribe', 'publish', 'pubsub|numsub', 'ping', 'info', 'scan', 'time'],
    ...['del', 'hdel', 'hexists', 'hget', 'hincrby', 'hkeys', 'hmget', 'hset', 'hvals', 'pexpire', 'pttl'],
    ...['zcard', 'zcount', 'zrank', 'zrem', 'zremrangebyscore', 'zscore'],
  ],
  // As the scripts call them: `ZADD` with `LT`, `ZRANGE` with `BYSCORE`.
  '6.2': ['zadd', 'zrange'],
};
