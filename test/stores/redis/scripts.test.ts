import { once } from 'node:events';
import type { Redis } from 'ioredis';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { key } from '../../../src/testing/contract/stage.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { until } from '../../support/until.ts';

describe('The scripts of RedisStore', () => {
  const stage = useRedis();
  const keys = {
    lock: 'reenlock:{order:42}:lock',
    queue: 'reenlock:{order:42}:queue',
  };

  /** The first call that sends a source ends as `instead` says. Returns how many calls have sent one so far. */
  function spoilSource(instead: () => Promise<unknown>): () => number {
    const call = stage.client.call.bind(stage.client) as (...words: readonly unknown[]) => Promise<unknown>;
    let count = 0;
    jest.spyOn(stage.client, 'call').mockImplementation(((name: string, ...args: readonly unknown[]) => {
      if (name !== 'eval') return call(name, ...args);
      count += 1;
      return count === 1 ? instead() : call(name, ...args);
    }) as Redis['call']);
    return () => count;
  }

  it('[server-06] A script is sent anew once for all the calls of one turn', async () => {
    const lines = Array.from({ length: 20 }, (_, index) =>
      stage.deafProcess().line(undefined, { id: `order:${index}` }),
    );
    await stage.client.script('FLUSH');
    await stage.client.config('RESETSTAT');
    const replies = await Promise.all(lines.map((line) => line.ask()));
    expect(replies.map(({ status }) => status)).toEqual(lines.map(() => 'granted'));
    expect([await stage.calls('eval'), await stage.calls()]).toEqual([1, 39]);
    // What comes later waits for none of them.
    await stage.client.script('FLUSH');
    await stage.client.config('RESETSTAT');
    await stage.deafProcess().line().hold();
    expect(await stage.calls()).toBe(1);
  });

  it('Each other call sends the script if the one that sent the source has failed', async () => {
    const lines = Array.from({ length: 3 }, (_, index) =>
      stage.deafProcess().line(undefined, { id: `order:${index}` }),
    );
    await stage.client.script('FLUSH');
    const sources = spoilSource(async () => {
      // The others were told before that their script is unknown.
      await stage.client.ping();
      throw new Error('Connection is closed.');
    });
    const replies = await Promise.allSettled(lines.map((line) => line.ask()));
    expect(replies).toMatchObject([
      { reason: { code: 'ERR_LOCK_STORE', outcome: 'unknown' } },
      { value: { status: 'granted' } },
      { value: { status: 'granted' } },
    ]);
    expect(sources()).toBe(3);
  });

  it('A script is sent again on another connection if the one with the call that sent the source has ended without a reply', async () => {
    await stage.client.script('FLUSH');
    const sources = spoilSource(() => new Promise(() => {}));
    void stage.deafProcess().line(undefined, { id: 'order:lost' }).ask();
    await until(() => sources() === 1);
    stage.client.disconnect(true);
    await once(stage.client, 'ready');
    expect(await stage.deafProcess().line().try()).toMatchObject({ status: 'granted' });
  });

  it('The edges of an owner are kept for as long as was asked, the 64 longest are reported, and expired ones are dropped', async () => {
    const edges = stage.store.edges!;
    const all = Array.from({ length: 70 }, () => ({
      request: stage.deafProcess().line().request,
      traceId: 'trace',
      key,
    }));
    const [seconds, us] = await stage.client.time();
    await Promise.all(all.map((edge, index) => edges.set('owner', edge, longMs + 1_000 * index)));
    expect(await edges.of('owner')).toEqual(all.slice(-64).reverse());
    const name = 'reenlock:{owner}:edges';
    const [first, untilMs] = await stage.client.zrange(name, 0, '0', 'WITHSCORES');
    expect(Number(untilMs)).toBeGreaterThanOrEqual(seconds! * 1000 + Math.floor(us! / 1000) + longMs);
    await stage.client.zadd(name, 1, first!);
    await edges.set('owner', all[1]!, longMs);
    expect(await stage.client.zcard(name)).toBe(69);
  });

  it.each([keys.lock, keys.queue])(
    'Scripts refuse a value of another type at %s, and change nothing',
    async (foreign) => {
      const process = stage.deafProcess();
      if (foreign !== keys.lock) await process.line().hold();
      await stage.client.sadd(foreign, 'member');
      const before = await stage.client.keys('*');
      await expect(process.line().ask()).rejects.toMatchObject({
        code: 'ERR_LOCK_STORE',
        outcome: 'not-applied',
        message: expect.stringContaining('The lock store replied WRONGTYPE to acquire'),
      });
      expect(await stage.client.smembers(foreign)).toEqual(['member']);
      expect((await stage.client.keys('*')).sort()).toEqual(before.sort());
    },
  );

  it('Scripts grant nothing to a waiter that has given up after its queue was evicted', async () => {
    const process = await stage.process();
    const holder = process.line();
    await holder.hold();
    const waiter = process.line();
    expect((await waiter.ask()).status).toBe('queued');
    await stage.client.del(keys.queue);
    expect((await waiter.release()).status).toBe('cancelled');
    expect((await holder.release()).claims).toEqual([]);
    expect((await stage.order()).holds).toEqual([]);
  });

  it('Scripts hand over to a waiter that has polled again since the lock was deleted, and another was queued before it', async () => {
    const process = await stage.process();
    await process.line().hold();
    const waiter = process.line();
    expect((await waiter.ask()).status).toBe('queued');
    await stage.client.del(keys.lock);
    const holder = process.line();
    await holder.hold();
    expect(await waiter.ask()).toMatchObject({ status: 'queued' });
    expect((await holder.release()).claims).toMatchObject([{ holdId: waiter.holdId }]);
    expect((await process.line().try()).status).toBe('refused');
  });

  it('Scripts grant a reader that has polled again since the lock was deleted, and take it out of the queue', async () => {
    const process = await stage.process();
    await process.line().hold();
    const waiter = process.reader();
    expect((await waiter.ask()).status).toBe('queued');
    await stage.client.del(keys.lock);
    const others = [process.reader(), process.reader()];
    for (const other of others) await other.hold();
    expect((await waiter.ask()).status).toBe('granted');
    expect(await stage.order()).toEqual({ holds: [...others, waiter].map(({ holdId }) => holdId), waiters: [] });
  });

  it('Scripts grant a waiter once, and no newcomer before it, even if thousands before it are skipped', async () => {
    const process = await stage.process();
    const holder = process.line();
    await holder.hold();
    const dead = stage.deafProcess();
    const crowd = Array.from({ length: 5_000 }, () => dead.line('dead'));
    await Promise.all(crowd.map((line) => line.ask({ maxWaiters: 10_000 })));
    expect((await stage.order()).waiters).toEqual(crowd.slice(0, 1_000).map(({ holdId }) => holdId));
    const waiter = process.line();
    await waiter.ask({ maxWaiters: 10_000 });
    await holder.release();
    // It has not looked at all of them.
    expect((await stage.order()).holds).toEqual([]);
    // A newcomer does not overtake the live waiter, though nobody found that yet.
    expect((await process.line().try()).status).toBe('refused');
    await waiter.hold({ maxWaiters: 10_000 });
    expect((await stage.order()).holds).toEqual([waiter.holdId]);
    expect(await stage.client.zcard(keys.queue)).toBe(crowd.length);
    expect((await waiter.release()).status).toBe('released');
    expect((await stage.order()).holds).toEqual([]);
  });
});
