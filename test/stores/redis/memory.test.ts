import { LockStoreError } from '../../../src/core/model/errors/failures.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { key } from '../../../src/testing/contract/stage.ts';
import { useRedis } from '../../support/redis/redis-stage.ts';

describe('A server at its `maxmemory`, with `noeviction`', () => {
  const stage = useRedis(['--maxmemory', '16mb', '--maxmemory-policy', 'noeviction']);

  /** From here on the server refuses whatever needs memory, also after a lock's few bytes were freed. */
  async function fill(): Promise<void> {
    // Short commands: the buffers of long ones would count, too, for a while after the test.
    await stage.client.setrange('fill:1', 12_000_000, 'x');
    await stage.client.setrange('fill:2', 12_000_000, 'x');
    await expect(stage.client.set('one-more', '')).rejects.toThrow('OOM');
  }

  const outOfMemory = {
    outcome: 'not-applied',
    message: expect.stringContaining('The lock store replied OOM to acquire'),
  };

  it('At maxmemory, an acquire of a new key is refused with a typed error, and leaves nothing', async () => {
    await fill();
    const line = stage.deafProcess().line();
    const error: unknown = await line.ask().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject(outOfMemory);
    expect(await stage.order()).toEqual({ holds: [], waiters: [] });
    expect(await stage.client.keys('reenlock:*')).toEqual([]);
    // The server has replied: no copy of the refused call can arrive.
    await stage.client.flushall();
    expect((await line.ask()).mayArriveLater).toBe(false);
  });

  it('At maxmemory, an acquire of a key that was used before is refused, too, and leaves it free', async () => {
    const process = stage.deafProcess();
    const line = process.line();
    await line.hold();
    await line.release();
    await fill();
    await expect(process.line().ask()).rejects.toMatchObject(outOfMemory);
    expect(await stage.order()).toEqual({ holds: [], waiters: [] });
  });

  it('At maxmemory, a new waiter is refused, and leaves neither an entry nor a count', async () => {
    const process = stage.deafProcess();
    const holder = process.line();
    await holder.hold();
    await fill();
    const keys = await stage.client.keys('reenlock:*');
    await expect(process.line().ask()).rejects.toMatchObject(outOfMemory);
    expect((await stage.order()).waiters).toEqual([]);
    expect(await stage.client.keys('reenlock:*')).toEqual(keys);
  });

  it('At maxmemory, a release succeeds, and is remembered, if an acquire of it may still arrive', async () => {
    const line = stage.deafProcess().line();
    await line.hold();
    await fill();
    expect((await line.copy.release(longMs)).status).toBe('released');
    expect((await line.ask()).status).toBe('cancelled');
  });

  it('At maxmemory, renewals and releases of several readers succeed', async () => {
    const process = stage.deafProcess();
    const readers = [process.reader(), process.reader(), process.reader()] as const;
    for (const reader of readers) await reader.hold();
    const { fence } = (await stage.inspect()).holds[0]!;
    await fill();
    for (const reader of readers) expect((await reader.renew(fence, 2 * longMs)).status).toBe('renewed');
    for (const reader of readers) expect((await reader.release(longMs)).status).toBe('released');
    expect(await stage.order()).toEqual({ holds: [], waiters: [] });
  });

  it('At maxmemory, a cancel, with and without a tombstone, and a release of nothing succeed', async () => {
    const process = stage.deafProcess();
    await process.line().hold();
    const [first, second] = [await process.line().wait(), await process.line().wait()];
    await fill();
    expect((await first.release(longMs)).status).toBe('cancelled');
    expect((await second.release()).status).toBe('cancelled');
    expect((await process.line().release(longMs)).status).toBe('absent');
    expect((await stage.order()).waiters).toEqual([]);
  });

  it('[server-05] At maxmemory, polls succeed and hand-offs go on, from process to process, until the queue is empty', async () => {
    const [one, two] = [await stage.process(), await stage.process()];
    const holder = one.line();
    await holder.hold();
    const lines = [await two.line().wait(), await one.line().wait(), await two.line().wait()];
    await fill();
    let last = holder;
    for (const line of lines) {
      // It must be written down that its process is live for longer.
      expect((await line.ask({ livenessMs: 2 * longMs })).status).toBe('queued');
      await last.release();
      const grant = await line.hold();
      expect((await line.renew(grant.fence)).status).toBe('renewed');
      last = line;
    }
    await last.release();
    expect(await stage.order()).toEqual({ holds: [], waiters: [] });
  });

  it('At maxmemory, the edges of waiters can be read, and no more can be written', async () => {
    await fill();
    const edges = stage.store.edges!;
    const edge = { request: stage.deafProcess().line().request, traceId: 'trace', key };
    await edges.set('owner', edge, longMs);
    expect(await edges.of('owner')).toEqual([edge]);
    await edges.clear('owner', edge);
    expect(await edges.of('owner')).toEqual([]);
  });

  it('At maxmemory, a forced release succeeds and hands over', async () => {
    const process = await stage.process();
    const { fence } = await process.line().hold();
    const waiter = await process.line().wait();
    await fill();
    expect(await stage.store.forceRelease(key, fence)).toBe(true);
    await process.granted(waiter);
  });

  it('At maxmemory, an unreachable process is skipped', async () => {
    const process = await stage.process();
    const holder = process.line();
    await holder.hold();
    const dead = await stage.deafProcess().line().wait();
    const next = await process.line().wait();
    await fill();
    expect((await holder.release()).claims).toMatchObject([{ holdId: next.holdId }]);
    expect((await stage.order()).waiters).toEqual([dead.holdId]);
  });
});
