import { setTimeout } from 'node:timers/promises';
import fc from 'fast-check';
import { goneMs, longMs, shortMs } from '../../../src/testing/contract/harness.ts';
import type { Line } from '../../../src/testing/contract/stage.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';
import { until } from '../../support/until.ts';

describe('The keys of RedisStore', () => {
  const stage = useRedis();

  it('All keys have an expiry after any operation', async () => {
    const step = fc.record({ line: fc.nat(5), operation: fc.nat(5) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
        await stage.client.flushall();
        const processes = [await stage.process(), stage.deafProcess()] as const;
        const lines = Array.from({ length: 6 }, (_, index) => processes[index % 2]!.line(`owner-${index % 3}`));
        for (const { line, operation } of steps) await operate(lines[line]!, operation);
        for (const name of await stage.client.keys('*')) expect([name, await isLasting(name)]).toEqual([name, false]);
        await stage.end();
      }),
      { numRuns: 60 },
    );
  });

  async function operate(line: Line, operation: number): Promise<void> {
    const { holds } = await stage.inspect();
    const fence = holds[0]?.fence ?? 1;
    if (operation === 0) await line.try();
    else if (operation === 1) await line.release();
    else if (operation === 2) await line.release(longMs);
    else if (operation === 3) await line.renew(fence);
    else if (operation === 4) await stage.store.forceRelease(line.request.id, fence);
    else await line.ask();
  }

  async function isLasting(name: string): Promise<boolean> {
    return (await stage.client.pttl(name)) < 0;
  }

  it('Keys outlast what they are about', async () => {
    const line = stage.deafProcess().line();
    const { fence } = await line.hold();
    await stage
      .deafProcess()
      .line()
      .wait({ livenessMs: 3 * longMs });
    // A shorter one moves no expiry nearer.
    await stage.deafProcess().line().wait({ livenessMs: longMs });
    await line.renew(fence, 5 * longMs);
    for (const [name, ms] of [
      ['lock', 5 * longMs],
      ['queue', 2 * longMs],
      ['waiters', 2 * longMs],
    ] as const) {
      expect(await stage.client.pttl(`reenlock:{order:42}:${name}`)).toBeGreaterThan(ms);
    }
  });

  it('A force release of permits that hands off to others leaves no lease of those before', async () => {
    const process = await stage.process();
    await process.permit(2).hold();
    const { fence } = await process.permit(2).hold();
    const waiters = [await process.permit(2).wait(), await process.permit(2).wait()];
    expect(await stage.store.forceRelease(waiters[0]!.request.id, fence)).toBe(true);
    const leases = await stage.client.zrange('reenlock:{order:42}:leases', '0', '-1');
    expect(leases.sort()).toEqual(waiters.map(({ holdId }) => holdId).sort());
  });

  it('Keys are gone after the last release, except the small one that keeps the fence rising', async () => {
    const [one, two] = [await stage.process(), await stage.process()];
    const holder = one.line('owner');
    await holder.hold();
    const inner = two.line('owner');
    await inner.hold();
    const waiters = [await one.line('a').wait(), await two.line('b').wait(), await one.line('b').wait()];
    await waiters[2]!.release();
    await inner.release();
    await holder.release();
    for (const line of waiters) await line.release();
    const keys = await stage.client.keys('*');
    expect(keys).toEqual(['reenlock:{order:42}:lock']);
    expect(Object.keys(await stage.client.hgetall(keys[0]!)).sort()).toEqual(['fence', 'format']);
    expect(await stage.client.pttl(keys[0]!)).toBeLessThanOrEqual(4_601_000);
  });

  it('The keys of a queue are gone when the processes that waited in it are gone', async () => {
    const process = await stage.process();
    const holder = process.line();
    await holder.hold();
    for (let count = 0; count < 3; count++) await (await stage.process()).line().wait({ livenessMs: shortMs });
    const keys = ['queue', 'waiters'].map((name) => `reenlock:{order:42}:${name}`);
    await until(async () => (await stage.client.exists(...keys)) === 0);
    await holder.release();
    expect(await stage.order()).toEqual({ holds: [], waiters: [] });
    expect((await process.line().ask()).status).toBe('granted');
  });

  it('The keys of a queue count the waiters of a trace anew when a process that waited for it is gone', async () => {
    const [reader, live, next] = [await stage.process(), await stage.process(), await stage.process()];
    await reader.reader().hold();
    await (await stage.process()).line('trace').wait({ livenessMs: shortMs });
    await live.line().wait();
    await setTimeout(goneMs);
    await next.line('trace').wait();
    expect(await stage.client.hget('reenlock:{order:42}:waiters', 'c:trace')).toBe('1');
  });

  it('[server-08] Keys keep the fence rising even if the clock of the server was set back', async () => {
    const process = stage.deafProcess();
    const line = process.line();
    const { fence } = await line.hold();
    await line.release();
    // As if it had been written by a clock ten days ahead.
    const ahead = fence + 10 * 86_400_000_000;
    const record = 'reenlock:{order:42}:lock';
    await stage.client.hset(record, 'fence', ahead);
    await stage.client.pexpire(record, longMs);
    const next = process.line();
    expect((await next.hold()).fence).toBe(ahead + 1);
    await next.release();
    expect(await stage.client.pttl(record)).toBeGreaterThan(10 * 86_400_000 + 3_500_000);
    const last = process.line();
    expect((await last.hold()).fence).toBe(ahead + 2);
    // Longer than the lease before it: the expiry is set anew.
    const waiter = await process.line(undefined, { claimMs: 7_200_000 }).wait();
    expect((await last.release()).claims).toMatchObject([{ holdId: waiter.holdId, fence: ahead + 3 }]);
    expect(await stage.client.pttl(record)).toBeGreaterThan(10 * 86_400_000 + 3_500_000);
  });
});
