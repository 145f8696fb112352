import { longMs, shortMs } from '../harness.ts';
import { type Contract, key } from '../stage.ts';

// biome-ignore lint/style/noRestrictedGlobals: C13 is about a caller whose wall clock is wrong.
const wallClock = Date;
const farFuture = wallClock.UTC(2099, 0, 1);

/** C11, C13: the fence and the clock. */
export function describeFences({ harness, stage, describe, it, itQueues, expect }: Contract): void {
  describe('C11 A fence rises with each change of owner', () => {
    it('A fence rises with release and acquire, however fast they follow', async () => {
      const process = stage.deafProcess();
      const fences: number[] = [];
      for (let turn = 0; turn < 50; turn++) {
        const line = process.line();
        fences.push((await line.hold()).fence);
        await line.release(turn % 2 === 0 ? 0 : longMs);
      }
      for (let turn = 1; turn < fences.length; turn++) expect(fences[turn]).toBeGreaterThan(fences[turn - 1]!);
    });

    itQueues('The fence rises with a hand-off', async () => {
      const process = await stage.process();
      let last = process.line();
      let { fence } = await last.hold();
      const lines = Array.from({ length: 20 }, () => process.line());
      for (const line of lines) await line.wait();
      for (const line of lines) {
        const [claim] = (await last.release()).claims;
        expect(claim!.fence).toBeGreaterThan(fence);
        ({ fence } = claim!);
        last = line;
      }
    });

    it('A fence rises when a lease has ended, also for the same owner', async () => {
      const process = stage.deafProcess();
      const { fence } = await process.line('owner').hold({ leaseMs: shortMs });
      await harness.elapse(shortMs);
      expect((await process.line('owner').hold()).fence).toBeGreaterThan(fence);
    });

    itQueues('The fence rises when a claim has lapsed', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      await process.line(undefined, { claimMs: shortMs }).wait();
      const { fence } = (await holder.release()).claims[0]!;
      await harness.elapse(shortMs);
      expect((await process.line().hold()).fence).toBeGreaterThan(fence);
    });

    it('A fence rises after a forced release', async () => {
      const process = stage.deafProcess();
      const { fence } = await process.line().hold();
      await stage.store.forceRelease(key, fence);
      expect((await process.line().hold()).fence).toBeGreaterThan(fence);
    });

    it('A fence stays equal while one owner holds on, through renewals and re-entries', async () => {
      const process = stage.deafProcess();
      const first = process.line('owner');
      const second = process.line('owner');
      const { fence } = await first.hold();
      await first.renew(fence);
      await second.hold();
      await first.release();
      expect((await process.line('owner').hold()).fence).toBe(fence);
      expect((await second.hold()).fence).toBe(fence);
    });

    it("and is at least the store's time in microseconds", async () => {
      const { nowMs, ...reply } = await stage.deafProcess().line().ask();
      if (reply.status === 'granted') expect(reply.grant.fence).toBeGreaterThanOrEqual((nowMs - 1) * 1000);
      expect(reply.status).toBe('granted');
    });

    for (const loss of harness.losses) {
      it(`A fence rises after ${loss.name}`, async () => {
        const process = stage.deafProcess();
        const line = process.line();
        const { fence } = await line.hold();
        stage.store = await loss.happen();
        expect((await process.line().hold()).fence).toBeGreaterThan(fence);
      });
    }
  });

  describe("C13 The store's clock decides", () => {
    for (const callerMs of [0, farFuture]) {
      it(`A caller whose clock shows ${callerMs} ends no lease and begins none`, async () => {
        const process = stage.deafProcess();
        const holder = process.line();
        const before = await holder.ask();
        const reply = await withWallClock(callerMs, () => process.line().try());
        expect(reply).toMatchObject({ status: 'refused' });
        expect(Math.abs(reply.nowMs - before.nowMs)).toBeLessThan(longMs);
        expect((await stage.order()).holds).toEqual([holder.holdId]);
      });
    }

    it('A hold whose lease has ended counts for nothing, even if nobody removed it', async () => {
      const process = stage.deafProcess();
      await process.line().hold({ leaseMs: shortMs });
      await harness.elapse(shortMs);
      expect((await stage.inspect()).holds).toEqual([]);
      expect((await process.line().try()).status).toBe('granted');
    });

    it("of one owner's holds, each ends with its own lease", async () => {
      const process = stage.deafProcess();
      await process.line('owner').hold({ leaseMs: shortMs });
      const long = process.line('owner');
      const { fence } = await long.hold();
      await harness.elapse(shortMs);
      expect((await stage.inspect()).holds).toMatchObject([{ holdId: long.holdId, fence }]);
    });

    it('The time in the replies goes on', async () => {
      const process = stage.deafProcess();
      const line = process.line();
      const times = [(await line.ask()).nowMs];
      await harness.elapse(shortMs);
      times.push((await line.ask()).nowMs, (await stage.inspect()).nowMs);
      expect(times[1]! - times[0]!).toBeGreaterThanOrEqual(shortMs - 1);
      expect(times[2]).toBeGreaterThanOrEqual(times[1]!);
    });
  });
}

/** Calls with a wall clock that is wrong. */
async function withWallClock<T>(nowMs: number, call: () => Promise<T>): Promise<T> {
  const { now } = wallClock;
  try {
    wallClock.now = () => nowMs;
    return await call();
  } finally {
    wallClock.now = now;
  }
}
