import { shortMs } from '../../harness.ts';
import type { Contract } from '../../stage.ts';

/** C32: keys of one kind. */
export function describeMismatches({ harness, stage, describe, it, itQueues, expect }: Contract): void {
  const mismatch = (permits: number | undefined) => ({ status: 'mismatch', permits });

  describe('C32 All holds and waiters of a key have the same number of permits', () => {
    it('An acquire with another number, or with none, is refused as a mismatch that names the number', async () => {
      const process = stage.deafProcess();
      const holder = process.permit(2);
      await holder.hold();
      for (const line of [
        process.permit(3),
        process.line(),
        process.reader(),
        process.permit(1, holder.request.owner),
      ]) {
        for (const queue of [true, false]) expect(await line.ask({ queue })).toMatchObject(mismatch(2));
      }
      expect(await stage.order()).toEqual({ holds: [holder.holdId], waiters: [] });
    });

    it('An acquire with permits is a mismatch on a key that is held to write or to read', async () => {
      const process = stage.deafProcess();
      for (const holder of [process.line(), process.reader()]) {
        await holder.hold();
        const reply = await process.permit(2).ask();
        expect([reply.status, 'permits' in reply && reply.permits]).toEqual(['mismatch', undefined]);
        await holder.release();
      }
      expect((await stage.order()).waiters).toEqual([]);
    });

    itQueues(
      'Waiters count, too: those of a process that is passed over still say which kind the key is of',
      async () => {
        if (harness.lacks?.includes('reachability')) return;
        const process = stage.deafProcess();
        const holder = process.permit(1);
        await holder.hold();
        await stage.deafProcess().permit(1).wait();
        await holder.release();
        expect(await process.line().ask({ queue: false })).toMatchObject(mismatch(1));
        expect(await process.permit(1).status({ queue: false })).toBe('granted');
      },
    );

    it('A key that nobody holds takes either kind, also one whose leases are over', async () => {
      const process = stage.deafProcess();
      const permit = process.permit(2);
      await permit.hold();
      await permit.release();
      const writer = process.line();
      await writer.hold({ leaseMs: shortMs });
      await harness.elapse(shortMs);
      await process.permit(3).hold({ leaseMs: shortMs });
      await harness.elapse(shortMs);
      expect((await stage.inspect()).permits).toBeUndefined();
      await process.reader().hold();
    });

    for (const loss of harness.losses) {
      itQueues(`After ${loss.name}, a waiter whose key has another kind by now is a mismatch`, async () => {
        const process = await stage.process();
        await process.permit(1).hold();
        const waiter = await process.permit(1).wait();
        stage.store = await loss.happen();
        await stage.deafProcess().line().hold();
        expect(await waiter.ask()).toMatchObject({ status: 'mismatch' });
      });
    }
  });
}
