import { once } from 'node:events';
import { Redis } from 'ioredis';
import { Redis as Redis5 } from 'ioredis5';
import { createLocks, type LockEvents, LockStoreError, type Locks, lock, runInTrace } from '../../../src/core/index.ts';
import { RedisStore } from '../../../src/core/stores/redis/redis-store.ts';
import { freePort } from '../../support/processes/free-port.ts';
import { watchLeaks } from '../../support/processes/leaks.ts';
import { type RedisOptions, useRedis } from '../../support/redis/redis-stage.ts';
import { startRedis } from '../../support/redis/server.ts';
import { until } from '../../support/until.ts';

watchLeaks();

const clients = {
  'ioredis 6': (port: number, options: RedisOptions) => new Redis(port, options),
  'ioredis 5': (port: number, options: RedisOptions) => new Redis5(port, options as object) as unknown as Redis,
};

describe.each(Object.keys(clients) as (keyof typeof clients)[])('An outage of the server, with %s', (version) => {
  const stage = useRedis();
  let client: Redis;
  let locks: Locks;
  let events: { [E in 'storeDown' | 'storeUp' | 'storeError' | 'released']: LockEvents[E][] };

  beforeEach(async () => {
    // As BullMQ asks for: such a client keeps what it is given until it has a connection.
    client = clients[version](stage.server.port, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
    client.on('error', () => {});
    await client.ping();
    locks = createLocks({ store: new RedisStore({ client }), storeTimeoutMs: 200, pollMs: 100 });
    events = { storeDown: [], storeUp: [], storeError: [], released: [] };
    for (const [name, list] of Object.entries(events)) {
      locks.on(name as 'storeDown', (event) => void (list as unknown[]).push(event));
    }
  });
  afterEach(async () => {
    await locks.close({ drainMs: 0 });
    client.disconnect();
  });

  const acquire = (key: string): Promise<unknown> =>
    runInTrace(() => lock.run(key, () => {}), { locks }).catch((error: unknown) => error);
  const queued = () => {
    const { offlineQueue, commandQueue } = client as unknown as Record<string, { length: number }>;
    return offlineQueue!.length + commandQueue!.length;
  };
  const scriptCalls = async () =>
    Number(/_evalsha:calls=(\d+)/.exec(await stage.client.info('commandstats'))?.[1] ?? 0);

  it('[outage-01] An outage leaves nothing in the queue of the client, and no call that was refused in it is ever sent', async () => {
    await acquire('warm-up');
    await stage.server.kill();
    await until(() => client.status !== 'ready');
    const lengths: number[] = [];
    for (let round = 0; round < 20; round++) {
      const failures = Array.from({ length: 50 }, (_, n) => acquire(`order:${round}-${n}`));
      lengths.push(queued());
      for (const error of await Promise.all(failures)) {
        expect(error).toBeInstanceOf(LockStoreError);
        expect(error).toMatchObject({ outcome: 'not-applied', cause: { code: 'ECONNREFUSED' } });
      }
    }
    expect(lengths).toEqual(lengths.map(() => 0));
    expect(events.storeDown).toMatchObject([{ error: { code: 'ECONNREFUSED' } }]);
    expect(events.storeError).toHaveLength(1_000);
    await stage.server.restart();
    await until(() => events.storeUp.length === 1);
    expect(events.storeUp).toMatchObject([{ failedCalls: 1_000 }]);
    const before = await scriptCalls();
    expect(await acquire('fresh')).toBeUndefined();
    // The grant and the release, each of which a server that has restarted does not know at first.
    expect((await scriptCalls()) - before).toBeLessThanOrEqual(4);
    expect(await stage.client.keys('*')).toEqual(['reenlock:{fresh}:lock']);
  });

  it('[outage-02] A release is sent when the connection is back, and once', async () => {
    let release: Promise<unknown> = Promise.resolve();
    await runInTrace(
      async () => {
        const hold = await lock.acquire('key');
        await stage.server.kill();
        await until(() => client.status !== 'ready');
        release = hold.release().catch((error: unknown) => error);
        expect(await release).toMatchObject({ outcome: 'not-applied' });
        expect(queued()).toBe(0);
      },
      { locks },
    );
    await stage.server.restart();
    await until(() => events.released.length === 1);
    expect(await stage.client.info('commandstats')).toMatch(/_evalsha:calls=1,/);
  });

  it('A moment without a connection costs an acquire nothing but time', async () => {
    await acquire('warm-up');
    const closed = once(client, 'close');
    client.disconnect(true);
    await closed;
    expect(await acquire('key')).toBeUndefined();
    expect([events.storeDown, events.storeError]).toEqual([[], []]);
  });

  it('A client that has not connected yet is waited for, so that a process may start before its server', async () => {
    const port = await freePort();
    const early = clients[version](port, { maxRetriesPerRequest: null, retryStrategy: () => 20 });
    early.on('error', () => {});
    const own = createLocks({ store: new RedisStore({ client: early }), storeTimeoutMs: 10_000 });
    const done = runInTrace(() => lock.run('key', () => 'done'), { locks: own });
    const server = await startRedis({ port });
    expect(await done).toBe('done');
    await own.close();
    early.disconnect();
    await server.stop();
  });

  it('A client that the application has closed fails every call at once', async () => {
    await client.quit();
    await until(() => client.status === 'end');
    expect(await acquire('key')).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied' });
  });
});
