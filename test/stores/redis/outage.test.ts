import { createLocks, type LockEvents, LockStoreError, type Locks, lock, runInTrace } from '../../../src/core/index.ts';
import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { freePort } from '../../support/processes/free-port.ts';
import { TcpProxy } from '../../support/processes/tcp-proxy.ts';
import { type AppClient, clientLibraries } from '../../support/redis/clients.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { startRedis } from '../../support/redis/server.ts';
import { until } from '../../support/until.ts';

describe.each(clientLibraries)('An outage of the server, with $name', (library) => {
  const stage = useRedis();
  let app: AppClient;
  let store: RedisStore;
  let locks: Locks;
  let events: { [E in 'storeDown' | 'storeUp' | 'storeError' | 'released']: LockEvents[E][] };

  beforeEach(async () => {
    // An ioredis client as BullMQ asks for: it keeps what it is given until it has a connection.
    app = library.connect({ port: stage.server.port });
    await app.ready();
    store = new RedisStore({ client: app.client });
    locks = createLocks({ store, storeTimeoutMs: 1_000, pollMs: 100 });
    events = { storeDown: [], storeUp: [], storeError: [], released: [] };
    for (const [name, list] of Object.entries(events)) {
      locks.on(name as 'storeDown', (event) => void (list as unknown[]).push(event));
    }
  });
  afterEach(async () => {
    await locks.close({ drainMs: 0 });
    app.close();
  });

  const acquire = (key: string): Promise<unknown> =>
    runInTrace(() => lock.run(key, () => {}), { locks }).catch((error: unknown) => error);

  it('[outage-01] An outage leaves nothing in the queue of the client, and no call that was refused in it is ever sent', async () => {
    await acquire('warm-up');
    await stage.server.kill();
    await until(() => !store.link.isUp);
    const lengths: number[] = [];
    for (let round = 0; round < 20; round++) {
      const failures = Array.from({ length: 50 }, (_, n) => acquire(`order:${round}-${n}`));
      lengths.push(app.queued());
      for (const error of await Promise.all(failures)) {
        expect(error).toBeInstanceOf(LockStoreError);
        expect(error).toMatchObject({ outcome: 'not-applied', cause: { code: 'ECONNREFUSED' } });
      }
    }
    expect(lengths).toEqual(lengths.map(() => 0));
    expect(events.storeDown).toMatchObject([{ error: { code: 'ECONNREFUSED' } }]);
    // The stream of messages may have found it out a moment before the client did.
    expect(events.storeError.filter(({ operation }) => operation === 'acquire')).toHaveLength(1_000);
    await stage.server.restart();
    await until(() => events.storeUp.length === 1);
    expect(events.storeUp).toMatchObject([{ failedCalls: 1_000 }]);
    const before = await stage.calls();
    expect(await acquire('fresh')).toBeUndefined();
    // The grant and the release, each of which a server that has restarted does not know at first.
    expect((await stage.calls()) - before).toBeLessThanOrEqual(4);
    expect(await stage.client.keys('*')).toEqual(['reenlock:{fresh}:lock']);
  });

  it('[outage-02] A release is sent when the connection is back, and once', async () => {
    let release: Promise<unknown> = Promise.resolve();
    await runInTrace(
      async () => {
        const hold = await lock.acquire('key');
        await stage.server.kill();
        await until(() => !store.link.isUp);
        release = hold.release().catch((error: unknown) => error);
        expect(await release).toMatchObject({ outcome: 'not-applied' });
        expect(app.queued()).toBe(0);
      },
      { locks },
    );
    await stage.server.restart();
    await until(() => events.released.length === 1);
    expect(await stage.calls()).toBe(1);
  });

  it('A moment without a connection costs an acquire nothing but time', async () => {
    const proxy = await TcpProxy.start(stage.server.port);
    const own = library.connect({ port: proxy.port });
    await own.ready();
    const link = new RedisStore({ client: own.client }).link;
    const other = createLocks({ store: new RedisStore({ client: own.client }) });
    const errors: unknown[] = [];
    other.on('storeError', (event) => void errors.push(event));
    other.on('storeDown', (event) => void errors.push(event));
    proxy.cutOff();
    await until(() => !link.isUp);
    const done = runInTrace(() => lock.run('key', () => 'done'), { locks: other });
    proxy.heal();
    expect(await done).toBe('done');
    expect(errors).toEqual([]);
    await other.close();
    own.close();
    await proxy.stop();
  });

  it('A client that has not connected yet is waited for, so that a process may start before its server', async () => {
    const port = await freePort();
    const early = library.connect({ port });
    const own = createLocks({ store: new RedisStore({ client: early.client }), storeTimeoutMs: 10_000 });
    const done = runInTrace(() => lock.run('key', () => 'done'), { locks: own });
    const server = await startRedis({ port });
    expect(await done).toBe('done');
    await own.close();
    early.close();
    await server.stop();
  });

  it('A client that the application has closed fails every call at once', async () => {
    app.close();
    await until(() => store.link.isEnded);
    expect(await acquire('key')).toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'not-applied' });
  });
});
