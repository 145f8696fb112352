import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';

describe('RedisStore', () => {
  const stage = useRedis();

  it('A listing names only locks of its prefix, even if the client also has a prefix', async () => {
    const client = stage.connect({ keyPrefix: 'a*:' });
    const own = new RedisStore({ client, prefix: 'p?:' });
    const request = { ...stage.deafProcess().line().request, id: 'own' };
    await own.acquire(request, { leaseMs: 60_000, queue: false, maxWaiters: 1, livenessMs: 1_000 });
    await client.set('p?:{not}:lock', 'x');
    await stage.client.set('aX:pY:{other}:lock', 'x');
    await stage.deafProcess().line().hold();
    expect((await own.list({ idPrefix: 'o', limit: 1000 })).locks.map(({ id }) => id)).toEqual(['own']);
    expect((await own.list({ idPrefix: 'ow', limit: 1000 })).locks[0]).toMatchObject({ holds: [{ mode: 'write' }] });
  });

  it('A listing inspects no lock that is free', async () => {
    const process = stage.deafProcess();
    for (const id of ['once', 'twice', 'waited']) {
      const line = process.line(undefined, { id });
      await line.hold();
      const waiter = id === 'waited' ? await process.line(undefined, { id }).wait() : undefined;
      await line.release(60_000);
      await waiter?.release();
    }
    await process.line(undefined, { id: 'held' }).hold();
    const reader = process.line(undefined, { id: 'read', mode: 'read' });
    await reader.hold();
    await process.line(undefined, { id: 'read', mode: 'read' }).hold();
    const store = new RedisStore({ client: stage.client });
    const inspected: string[] = [];
    const inspect = store.inspect.bind(store);
    store.inspect = (id) => {
      inspected.push(id);
      return inspect(id);
    };
    const { locks } = await store.list({ idPrefix: '', limit: 1_000 });
    expect(locks.map(({ id }) => id).sort()).toEqual(['held', 'read']);
    expect(inspected.sort()).toEqual(['held', 'read']);
  });

  it('A page names as many locks as it is asked to look at, and each of them once, even if SCAN returns it twice', async () => {
    const process = stage.deafProcess();
    const ids = Array.from({ length: 300 }, (_, i) => `order:${i}`);
    await Promise.all(ids.map((id) => process.line(undefined, { id }).hold()));
    const scan = stage.client.scan.bind(stage.client) as (...args: unknown[]) => Promise<[string, string[]]>;
    const client = Object.create(stage.client, {
      scan: {
        value: async (...args: unknown[]) => {
          const [cursor, names] = await scan(...args);
          return [cursor, [...names, ...names]];
        },
      },
    });
    const { locks, cursor } = await new RedisStore({ client }).list({ idPrefix: 'order:', limit: 2_000 });
    expect(cursor).toBeUndefined();
    expect(locks.map(({ id }) => id).sort()).toEqual(ids.sort());
  });
});
