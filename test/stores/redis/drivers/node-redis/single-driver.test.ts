import { setImmediate } from 'node:timers/promises';
import { createClientPool, createCluster, createSentinel } from 'redis';
import type { RedisClient } from 'reenlock/redis';
import { CasStore, RedisCas } from 'reenlock/redis';
import { LockConfigError } from '../../../../../src/core/model/errors/mistakes.ts';
import { RedisStore } from '../../../../../src/stores/redis/redis-store.ts';
import { longMs } from '../../../../../src/testing/contract/harness.ts';
import { TcpProxy } from '../../../../support/processes/tcp-proxy.ts';
import { type AppClient, clientLibraries } from '../../../../support/redis/clients.ts';
import { useRedis } from '../../../../support/redis/redis-stage.ts';
import { until } from '../../../../support/until.ts';

const libraries = clientLibraries.filter(({ name }) => name.startsWith('node-redis'));

describe.each(libraries)('A client of $name', (library) => {
  const stage = useRedis();
  let proxy: TcpProxy;
  let app: AppClient;
  beforeEach(async () => {
    proxy = await TcpProxy.start(stage.server.port);
    app = library.connect({ port: proxy.port });
    await app.ready();
    stage.store = new RedisStore({ client: app.client });
  });
  afterEach(async () => {
    await stage.end();
    app.close();
    await proxy.stop();
  });

  it('A call whose reply is lost fails with an unknown outcome, and is never sent again', async () => {
    await stage.deafProcess().line(undefined, { id: 'warm-up' }).hold();
    const before = await stage.calls();
    const line = stage.deafProcess().line();
    void proxy.loseReply(([name]) => name === 'evalsha');
    await expect(line.ask()).rejects.toMatchObject({ code: 'ERR_LOCK_STORE', outcome: 'unknown' });
    await until(() => stage.store.link?.isUp);
    // It was executed, and the same call again gets the grant that it was given.
    expect((await line.ask()).status).toBe('granted');
    expect((await stage.calls()) - before).toBe(2);
    expect((await line.release(longMs)).status).toBe('released');
  });

  it("The client's time limit for commands does not count for the store's calls", async () => {
    app.close();
    app = library.connect({ port: stage.server.port, commandOptions: { timeout: 1 } });
    await app.ready();
    stage.store = new RedisStore({ client: app.client });
    await setImmediate();
    const asked = stage.deafProcess().line().ask();
    // The limit is over before the event loop can write the call.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    expect((await asked).status).toBe('granted');
  });

  it('A call for which the queue of the client has no place was not sent, and is known to be not applied', async () => {
    app.close();
    app = library.connect({ port: stage.server.port, commandsQueueMaxLength: 10 });
    await app.ready();
    stage.store = new RedisStore({ client: app.client });
    await stage.deafProcess().line(undefined, { id: 'warm-up' }).hold();
    const before = await stage.calls();
    const lines = Array.from({ length: 12 }, (_, i) => stage.deafProcess().line(undefined, { id: `order:${i}` }));
    const results = await Promise.allSettled(lines.map((line) => line.ask()));
    for (const result of results.slice(0, 10)) expect(result).toMatchObject({ value: { status: 'granted' } });
    for (const result of results.slice(10)) {
      const message = "The queue of the lock store's client is full: acquire was not sent";
      const cause = { cause: { message: 'The queue is full' } };
      expect(result).toMatchObject({ reason: { message, outcome: 'not-applied', cause } });
    }
    expect((await stage.calls()) - before).toBe(10);
  });

  it('The subscription stays on its connection when that is silent for longer than `socketTimeout` of the client', async () => {
    app.close();
    app = library.connect({ port: stage.server.port, socketTimeout: 100 });
    await app.ready();
    stage.store = new RedisStore({ client: app.client });
    await stage.process();
    const subscribed = async () => /^id=\d+(?=.* sub=1 )/m.exec(String(await stage.client.client('LIST')))?.[0];
    const before = await subscribed();
    // The silent connection of the client itself ends, twice.
    const client = app.client as unknown as { readonly socketEpoch: number };
    const { socketEpoch } = client;
    await until(() => client.socketEpoch >= socketEpoch + 2);
    expect(before).toBeDefined();
    expect(await subscribed()).toBe(before);
  });

  it('Grants arrive by message again after the connections were lost', async () => {
    const [one, two] = [await stage.process(), await stage.process()];
    for (let round = 0; round < 2; round++) {
      const holder = one.line();
      await holder.hold();
      const waiter = await two.line().wait();
      await holder.release();
      expect((await two.granted(waiter)).holdId).toBe(waiter.holdId);
      await waiter.release();
      proxy.cut();
      await until(() => stage.store.link?.isUp);
      await until(async () => (await stage.client.pubsub('CHANNELS')).length === 2);
    }
  });

  it('A CasStore writes by transactions on its own connections', async () => {
    const adapter = new RedisCas({ client: app.client });
    stage.store = new CasStore({ adapter });
    const holder = stage.deafProcess().line();
    await holder.hold();
    const waiter = await stage.deafProcess().line().wait();
    await holder.release(longMs);
    expect(await waiter.status()).toBe('granted');
    await waiter.release(longMs);
    adapter.close();
  });
});

describe('The other clients of node-redis', () => {
  it('A pool is refused by its name', () => {
    const client = createClientPool({}) as unknown as RedisClient;
    for (const build of [() => new RedisStore({ client }), () => new RedisCas({ client })]) {
      expect(build).toThrow(LockConfigError);
      expect(build).toThrow('got a `RedisClientPool`, which is not supported');
    }
  });

  it.each<[string, RedisClient, string]>([
    [
      'RedisSentinel',
      createSentinel({ name: 'main', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] }),
      '_execute',
    ],
    ['RedisCluster', createCluster({ rootNodes: [{ url: 'redis://127.0.0.1:1' }] }), '_slots'],
  ])('A %s of a version that lacks what is used of it is refused by its name', (name, client, missing) => {
    const other = Object.create(client, { [missing]: { value: undefined } }) as RedisClient;
    expect(() => new RedisStore({ client: other })).toThrow(`got a \`${name}\`, which is not supported`);
  });
});
