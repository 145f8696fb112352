import { RedisStore } from '../../../src/stores/redis/redis-store.ts';
import { key, type Line } from '../../../src/testing/contract/stage.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';

const lock = `reenlock:{${key}}`;

describe('RedisStore', () => {
  const stage = useRedis();

  /** As if it had come so much earlier: an hour would be too long for a test. */
  async function age({ holdId }: Line, ms: number): Promise<void> {
    await stage.client.zincrby(`${lock}:queue`, -1_000 * ms, holdId);
    const words = String(await stage.client.hget(`${lock}:waiters`, `w:${holdId}`)).split(' ');
    words.push(String(Number(words.pop()) - 1_000 * ms));
    await stage.client.hset(`${lock}:waiters`, `w:${holdId}`, words.join(' '));
  }

  it.each([
    [1, 9_000, true],
    [1, 11_000, false],
    [100, 999_000, true],
    [100, 1_001_000, false],
  ])('Priority %i is ahead of a waiter that was queued %i ms earlier: %s', async (priority, ms, isBefore) => {
    const process = await stage.process();
    await process.line().hold();
    const low = await process.line().wait();
    await age(low, ms);
    const high = await process.line(undefined, { priority }).wait();
    const order = isBefore ? [high, low] : [low, high];
    expect((await stage.order()).waiters).toEqual(order.map(({ holdId }) => holdId));
    const { waiters, nowMs } = await stage.inspect();
    const aged = waiters.find(({ holdId }) => holdId === low.holdId)!;
    // The time is told in whole milliseconds, and all of it may have taken less than one.
    expect(nowMs - aged.sinceMs).toBeGreaterThan(ms - 1);
  });

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
    client.disconnect();
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
