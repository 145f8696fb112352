import { MemoryStore } from '../../../src/core/memory/memory-store.ts';
import { longMs } from '../../../src/testing/contract/harness.ts';
import { StoreStage } from '../../../src/testing/contract/stage.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';

describe('MemoryStore', () => {
  let clock: ManualClock;
  const stage = new StoreStage();
  beforeEach(() => {
    clock = new ManualClock();
    stage.store = new MemoryStore({ clock });
  });
  afterEach(() => stage.end());

  it.each([1, 250, 500, 750, 999])(
    'A release is remembered for as long as was asked for, begun %i ms after another',
    async (ms) => {
      const process = stage.deafProcess();
      await process.line().release(1_000);
      await clock.advance(ms);
      const line = process.line();
      await line.release(1_000);
      for (const _ of [1, 2, 3, 4]) {
        await clock.advance(249);
        expect((await line.ask()).status).toBe('cancelled');
      }
      await clock.advance(2_000);
      expect((await line.ask()).status).toBe('granted');
    },
  );

  it.each([
    [1, 9_999, true],
    [1, 10_001, false],
    [-1, 0, false],
    [100, 999_999, true],
    [100, 1_000_001, false],
  ])('Priority %i is ahead of a waiter that was queued %i ms earlier: %s', async (priority, ms, isBefore) => {
    const process = stage.deafProcess();
    await process.line().hold({ leaseMs: ms + longMs });
    const first = await process.line().wait({ livenessMs: ms + longMs });
    await clock.advance(ms);
    const second = await process.line(undefined, { priority }).wait();
    const order = isBefore ? [second, first] : [first, second];
    expect((await stage.order()).waiters).toEqual(order.map(({ holdId }) => holdId));
  });

  it('A hold is forgotten at its release if no call about it is on its way, and nothing else is', async () => {
    const process = stage.deafProcess();
    const held = process.line();
    await held.hold();
    expect((await held.release(longMs)).status).toBe('released');
    expect((await held.release(longMs)).status).toBe('absent');
    const late = process.line();
    await late.release(longMs);
    expect((await late.ask()).status).toBe('cancelled');
    await process.line().hold();
    const waiter = await process.line().wait();
    expect((await waiter.release(longMs)).status).toBe('cancelled');
    expect((await waiter.ask()).status).toBe('cancelled');
  });

  it('An acquire that queues has ended when it returns: no copy of it can arrive later', async () => {
    const process = stage.deafProcess();
    await process.line().hold();
    expect(await process.line().ask()).toMatchObject({ status: 'queued', mayArriveLater: false });
  });

  it('A live hold is listed behind more ended ones than are listed', async () => {
    const process = stage.deafProcess();
    for (let i = 0; i < 1_100; i++) await process.reader().hold({ leaseMs: 1_000 });
    const live = process.reader();
    await live.hold();
    const writer = await process.line().wait();
    await clock.advance(1_001);
    expect((await stage.order()).holds).toEqual([live.holdId]);
    expect((await stage.store.edges?.wait(writer.request))?.holds).toMatchObject([{ holdId: live.holdId }]);
  });

  it('A wall clock that steps moves neither leases nor fences', async () => {
    const process = stage.deafProcess();
    const line = process.line();
    const first = await line.ask();
    clock.jumpWall(-86_400_000);
    expect((await process.line().try()).status).toBe('refused');
    await line.release();
    const next = process.line();
    const second = await next.ask();
    expect(second.nowMs).toBe(first.nowMs);
    if (first.status === 'granted') expect((await next.hold()).fence).toBeGreaterThan(first.grant.fence);
    clock.jumpWall(2 * 86_400_000);
    expect((await process.line().try()).status).toBe('refused');
  });

  it('Each lock is listed once, in order, with no page after the last', async () => {
    const process = stage.deafProcess();
    for (const id of ['b', 'd', 'a', 'c']) await process.line(undefined, { id }).hold();
    const pages: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await stage.store.list!({ idPrefix: '', limit: 2, cursor });
      pages.push(page.locks.map(({ id }) => id).join());
      cursor = page.cursor;
    } while (cursor !== undefined && pages.length < 9);
    expect(pages).toEqual(['a,b', 'c,d']);
  });

  it('Fences are whole numbers on a clock with parts of a microsecond', async () => {
    clock.skip(0.1234);
    const { fence } = await stage.deafProcess().line().hold();
    expect(fence).toBe(1_700_000_000_000_123);
  });

  it('A lease ends in the millisecond in which it has ended, and not before', async () => {
    const process = stage.deafProcess();
    const line = process.line();
    const { fence } = await line.hold({ leaseMs: 1_000 });
    await clock.advance(999);
    expect((await process.line().try()).status).toBe('refused');
    await clock.advance(1);
    expect((await line.renew(fence)).status).toBe('lost');
    expect((await process.line().try()).status).toBe('granted');
  });

  it('A process is dropped in the millisecond in which its liveness has ended, and not before', async () => {
    const process = await stage.process();
    const other = await stage.process();
    const holders = [process.line(), process.line()] as const;
    await holders[0].hold();
    const first = await other.line().wait({ livenessMs: 1_000 });
    const live = await other.line().wait({ livenessMs: 1_000 });
    await holders[1].wait();
    await clock.advance(999);
    await holders[0].release();
    expect(await stage.order()).toEqual({ holds: [first.holdId], waiters: [live.holdId, holders[1].holdId] });
    await clock.advance(1);
    await stage.store.forceRelease('order:42', (await stage.inspect()).holds[0]!.fence);
    expect(await stage.order()).toEqual({ holds: [holders[1].holdId], waiters: [] });
  });

  it('MemoryStore starts no timer', async () => {
    const process = await stage.process();
    const line = process.line();
    await line.hold();
    await process.line().wait();
    await line.release(longMs);
    expect(clock.timerCount).toBe(0);
  });
});
