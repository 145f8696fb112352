import { longMs, shortMs } from '../harness.ts';
import { type Contract, holdIds } from '../stage.ts';

/** C29: a hold passes to another hold id. */
export function describeTransfer({ has, harness, stage, describe, it, itQueues, expect }: Contract): void {
  const isGranted = { status: 'granted', nowMs: expect.any(Number) };

  describe('C29 A transfer', () => {
    it('gives the hold to another hold id and owner, with a lease from now on and a higher fence', async () => {
      const from = stage.deafProcess().line();
      const to = stage.deafProcess().line();
      const { fence } = await from.hold();
      const reply = await from.transfer(to, 2 * longMs);
      expect(reply).toMatchObject({ ...isGranted, grant: { holdId: to.holdId, isClaim: false } });
      if (reply.status !== 'granted') return;
      expect(reply.grant.endMs).toBe(reply.nowMs + 2 * longMs);
      expect(reply.grant.fence).toBeGreaterThan(fence);
      const { owner, process } = to.request;
      expect((await stage.inspect()).holds).toEqual([{ ...reply.grant, owner, process, mode: 'write' }]);
      expect(await to.renew(reply.grant.fence)).toMatchObject({ status: 'renewed' });
      expect((await to.release()).status).toBe('released');
    });

    it('ends the old hold: its renewal is lost, its release returns `released` or `absent`, its acquire is cancelled', async () => {
      const from = stage.deafProcess().line();
      const to = stage.deafProcess().line();
      const { fence } = await from.hold();
      await from.transfer(to);
      expect(await from.renew(fence)).toEqual({ status: 'lost' });
      expect(['released', 'absent']).toContain((await from.release(longMs)).status);
      expect((await from.copy.ask()).status).toBe('cancelled');
      expect((await stage.order()).holds).toEqual([to.holdId]);
    });

    it('may make the lease shorter', async () => {
      const from = stage.deafProcess().line();
      const to = stage.deafProcess().line();
      await from.hold();
      await from.transfer(to, shortMs);
      await harness.elapse(shortMs);
      expect((await stage.deafProcess().line().try()).status).toBe('granted');
      expect((await to.transfer(stage.deafProcess().line())).status).toBe('lost');
    });

    it('A repeat returns the same grant, and a repeat after the release of the new hold is lost', async () => {
      const from = stage.deafProcess().line();
      const to = stage.deafProcess().line();
      await from.hold();
      const first = await from.transfer(to);
      const again = await from.transfer(to);
      expect([first, again]).toMatchObject(Array(2).fill({ status: 'granted', grant: { holdId: to.holdId } }));
      if (first.status === 'granted') expect(again).toMatchObject({ grant: first.grant });
      await to.release(longMs);
      expect(await from.transfer(to)).toEqual({ status: 'lost' });
      expect((await stage.order()).holds).toEqual([]);
    });

    it('Of two transfers of one hold, the first gets it', async () => {
      const from = stage.deafProcess().line();
      const [one, two] = [stage.deafProcess().line(), stage.deafProcess().line()];
      await from.hold();
      const replies = await Promise.all([from.transfer(one), from.transfer(two)]);
      expect(replies.map(({ status }) => status).sort()).toEqual(['granted', 'lost']);
      expect((await stage.order()).holds).toHaveLength(1);
    });

    it('of what is not held, or not any more, is lost, and makes nothing', async () => {
      const process = stage.deafProcess();
      expect(await process.line().transfer(process.line())).toEqual({ status: 'lost' });
      const line = await process.line().acquired({ leaseMs: shortMs });
      await harness.elapse(shortMs);
      expect(await line.transfer(process.line())).toEqual({ status: 'lost' });
      expect(await stage.order()).toEqual({ holds: [], waiters: [] });
    });

    it('to a hold id that was released before is lost, and the hold stays', async () => {
      const process = stage.deafProcess();
      const [from, to] = [process.line(), process.line()];
      await from.hold();
      await to.release(longMs);
      expect(await from.transfer(to)).toEqual({ status: 'lost' });
      expect((await stage.order()).holds).toEqual([from.holdId]);
    });

    it('of one of several holds of an owner is shared, and changes nothing', async () => {
      const process = stage.deafProcess();
      const [from, beside] = [process.line('owner'), process.line('owner')];
      const { fence } = await from.hold();
      await beside.hold();
      expect(await from.transfer(process.line())).toEqual({ status: 'shared' });
      expect((await stage.order()).holds.sort()).toEqual(holdIds([from, beside]).sort());
      expect(await from.renew(fence)).toMatchObject({ status: 'renewed' });
      expect((await beside.release()).status).toBe('released');
      expect((await from.transfer(process.line())).status).toBe('granted');
    });

    itQueues('The queue stays as it is, and the release of the new hold hands off', async () => {
      const process = await stage.process();
      const from = process.line();
      const to = stage.deafProcess().line();
      await from.hold();
      const waiter = await process.line().wait();
      expect((await from.transfer(to)).status).toBe('granted');
      expect(await stage.order()).toEqual({ holds: [to.holdId], waiters: [waiter.holdId] });
      await to.release();
      expect((await process.granted(waiter)).holdId).toBe(waiter.holdId);
    });

    itQueues(
      'Waiters of the new owner and of its descendants are granted with it, and a stranger waits on',
      async () => {
        const process = await stage.process();
        const from = await stage.deafProcess().line().acquired();
        const stranger = await process.line().wait();
        const same = await process.line('T').wait();
        const below = await process.line('T/1').wait();
        const to = stage.deafProcess().line('T');
        expect((await from.transfer(to)).status).toBe('granted');
        for (const waiter of [same, below]) expect((await process.granted(waiter)).holdId).toBe(waiter.holdId);
        const { holds, waiters } = await stage.order();
        expect([...holds].sort()).toEqual([to.holdId, same.holdId, below.holdId].sort());
        expect(waiters).toEqual([stranger.holdId]);
      },
    );

    it('A force release sends a message to the process of the new hold, and to no other', async () => {
      const [before, after] = [await stage.process(), await stage.process()];
      const [from, to] = [before.line(), after.line()];
      await from.hold();
      const reply = await from.transfer(to);
      if (reply.status === 'granted') await stage.store.forceRelease(to.request.id, reply.grant.fence);
      expect(await after.heard()).toEqual([{ kind: 'lost', holdId: to.holdId }]);
      expect(await before.heard()).toEqual([]);
    });

    if (has('modes'))
      it('The transfer of a reader alongside others shares their fence, and each reader can be passed on', async () => {
        const process = stage.deafProcess();
        const readers = [process.reader(), process.reader(), process.reader()];
        const { fence } = await readers[0]!.hold();
        for (const reader of readers) await reader.hold();
        const next = readers.map(() => process.reader());
        for (const [index, reader] of readers.entries())
          expect(await reader.transfer(next[index]!)).toMatchObject({ status: 'granted', grant: { fence } });
        expect((await stage.order()).holds.sort()).toEqual(holdIds(next).sort());
        expect((await process.line().try()).status).toBe('refused');
        for (const reader of next) expect((await reader.release()).status).toBe('released');
        expect((await process.line().try()).status).toBe('granted');
      });
  });
}
