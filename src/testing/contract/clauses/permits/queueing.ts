import { shortMs } from '../../harness.ts';
import { type Contract, holdIds, key, type Line, type Process } from '../../stage.ts';

/** C30: how permits are waited for. */
export function describePermitQueue({ harness, stage, describe, itQueues: it, expect }: Contract): void {
  /** Holds all permits of the key, each with another owner. */
  async function holdAll(process: Process, permits: number): Promise<Line[]> {
    const lines = Array.from({ length: permits }, () => process.permit(permits));
    for (const line of lines) await line.hold();
    return lines;
  }

  describe('C30 Permits are waited for in one queue', () => {
    it('A released permit passes to the next waiter in the same step, and its process gets a message', async () => {
      const holders = await holdAll(stage.deafProcess(), 2);
      const process = await stage.process();
      const waiters = [await process.permit(2).wait(), await process.permit(2).wait()];
      await holders[1]?.release();
      const order = await stage.order();
      expect(order.holds.sort()).toEqual(holdIds([holders[0] as Line, waiters[0] as Line]).sort());
      expect(order.waiters).toEqual(holdIds([waiters[1] as Line]));
      expect(await process.granted(waiters[0] as Line)).toMatchObject({ isClaim: true });
    });

    it('Nobody overtakes a waiter, not by a try either', async () => {
      const process = await stage.process();
      const holders = await holdAll(process, 2);
      const first = await process.permit(2).wait();
      await holders[0]?.release();
      await first.hold();
      const second = await process.permit(2).wait();
      expect(await process.permit(2).status({ queue: false })).toBe('refused');
      const third = await process.permit(2).wait();
      expect((await stage.order()).waiters).toEqual(holdIds([second, third]));
      await first.release();
      expect((await stage.order()).waiters).toEqual([third.holdId]);
    });

    it('Waiters in a row are granted together, as far as there are permits', async () => {
      const process = await stage.process();
      await holdAll(process, 3);
      const { holds } = await stage.inspect();
      const waiters: Line[] = [];
      for (let n = 0; n < 4; n++) waiters.push(await process.permit(3).wait());
      await stage.store.forceRelease(key, holds[0]?.fence ?? 0);
      const order = await stage.order();
      expect(order.holds.sort()).toEqual(holdIds(waiters.slice(0, 3)).sort());
      expect(order.waiters).toEqual(holdIds(waiters.slice(3)));
    });

    it('Other waiters of an owner that is granted are granted with it, by the same permit', async () => {
      const process = await stage.process();
      const holders = await holdAll(process, 2);
      const first = await process.permit(2, 'owner').wait();
      const between = await process.permit(2).wait();
      const last = await process.permit(2, 'owner').wait();
      await holders[0]?.release();
      const order = await stage.order();
      expect(order.holds.sort()).toEqual(holdIds([holders[1] as Line, first, last]).sort());
      expect(order.waiters).toEqual([between.holdId]);
      await first.release();
      expect((await stage.order()).waiters).toEqual([between.holdId]);
      await last.release();
      expect((await stage.order()).waiters).toEqual([]);
    });

    it('A permit whose lease has expired passes to the next waiter at its poll', async () => {
      const process = await stage.process();
      await process.permit(2).hold();
      await process.permit(2).hold({ leaseMs: shortMs });
      const waiter = process.permit(2);
      // It may have expired.
      await waiter.ask();
      await harness.elapse(shortMs);
      expect(await waiter.status()).toBe('granted');
    });

    it('A waiter that gives up lets those behind it go on waiting in their order', async () => {
      const process = await stage.process();
      const holders = await holdAll(process, 2);
      const waiters = [await process.permit(2).wait(), await process.permit(2).wait()] as const;
      expect((await waiters[0].release()).status).toBe('cancelled');
      expect((await stage.order()).waiters).toEqual([waiters[1].holdId]);
      await holders[0]?.release();
      expect((await stage.order()).holds).toContain(waiters[1].holdId);
    });

    it('Holds and waiters are reported, with the number of permits', async () => {
      const process = await stage.process();
      await holdAll(process, 2);
      await process.permit(2).wait();
      const { holds, waiters, permits } = await stage.inspect();
      expect([permits, holds.map(({ mode }) => mode), waiters.map(({ mode }) => mode)]).toEqual([
        2,
        ['permit', 'permit'],
        ['permit'],
      ]);
    });

    it('A force release takes all permits, and the next waiters get them', async () => {
      const process = await stage.process();
      const holders = await holdAll(process, 2);
      const waiter = await process.permit(2).wait();
      const { holds } = await stage.inspect();
      expect(await stage.store.forceRelease(key, holds[0]?.fence ?? 0)).toBe(true);
      expect(await stage.order()).toEqual({ holds: [waiter.holdId], waiters: [] });
      const lost = (await process.heard()).flatMap((message) => (message.kind === 'lost' ? [message.holdId] : []));
      expect(lost.sort()).toEqual(holdIds(holders).sort());
    });
  });
}
