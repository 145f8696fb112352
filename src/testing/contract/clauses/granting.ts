import { longMs, shortMs } from '../harness.ts';
import { type Contract, holdIds } from '../stage.ts';

/** C1 to C4: grants at once. */
export function describeGranting({ harness, stage, describe, it, itQueues, expect }: Contract): void {
  describe('C1 A free key is granted at once', () => {
    for (const queue of [true, false]) {
      it(`A grant has a fence, the end of the lease and the store's time (queue: ${queue})`, async () => {
        const line = stage.deafProcess().line();
        const reply = await line.ask({ queue, leaseMs: 12_345 });
        expect(reply).toMatchObject({
          status: 'granted',
          grant: {
            holdId: line.holdId,
            fence: expect.any(Number),
            endMs: reply.nowMs + 12_345,
            isClaim: false,
            otherHolds: 0,
          },
          nowMs: expect.any(Number),
          claims: [],
        });
      });
    }

    it('The fence is a whole number of microseconds, exact in a double', async () => {
      const { fence } = await stage.deafProcess().line().hold();
      expect(Number.isSafeInteger(fence)).toBe(true);
      expect(fence).toBeGreaterThan(1e15);
    });

    it('Each key is granted on its own', async () => {
      const process = stage.deafProcess();
      await process.line().hold();
      await process.line(undefined, { id: 'order:43' }).hold();
      expect((await stage.inspect()).holds).toHaveLength(1);
    });

    it('A released key is granted again at once', async () => {
      const process = stage.deafProcess();
      const first = await process.line().acquired();
      await first.release();
      await process.line().hold();
    });
  });

  describe('C2 While the lease of one owner lasts, no other owner is granted the key', () => {
    itQueues(
      'Another owner is not granted the key, neither with nor without the queue, nor in another process',
      async () => {
        const process = stage.deafProcess();
        const holder = await process.line().acquired();
        expect((await process.line().try()).status).toBe('refused');
        expect((await stage.deafProcess().line().ask()).status).toBe('queued');
        expect((await stage.order()).holds).toEqual([holder.holdId]);
      },
    );

    it("nor while only one of the owner's holds is left", async () => {
      const process = stage.deafProcess();
      const outer = process.line('owner');
      const inner = process.line('owner');
      await outer.hold();
      await inner.hold();
      await outer.release();
      expect((await process.line().try()).status).toBe('refused');
      await inner.release();
      expect((await process.line().try()).status).toBe('granted');
    });

    it('No other owner is granted the key while the owner’s longer lease lasts', async () => {
      const process = stage.deafProcess();
      await process.line('owner').hold({ leaseMs: shortMs });
      await process.line('owner').hold();
      await harness.elapse(shortMs);
      expect((await process.line().try()).status).toBe('refused');
    });

    it('Of many owners at once, exactly one is granted', async () => {
      const lines = Array.from({ length: 20 }, () => stage.deafProcess().line());
      const replies = await Promise.all(lines.map((line) => line.try()));
      expect(replies.filter(({ status }) => status === 'granted')).toHaveLength(1);
    });
  });

  describe('C3 The holding owner is granted at once', () => {
    it('The holding owner is granted with the fence that it has, in its process and in others', async () => {
      const process = stage.deafProcess();
      const { fence } = await process.line('owner').hold();
      for (const other of [process.line('owner'), stage.deafProcess().line('owner')]) {
        expect(await other.hold()).toMatchObject({ holdId: other.holdId, fence, isClaim: false });
      }
      expect((await stage.inspect()).holds).toHaveLength(3);
    });

    itQueues('The holding owner is granted past all waiters, and none of these is moved', async () => {
      const process = await stage.process();
      const holder = process.line('owner');
      const { fence } = await holder.hold();
      const waiters = [await process.line().wait(), await process.line().wait()];
      const inner = process.line('owner');
      expect((await inner.try()).status).toBe('granted');
      expect((await inner.hold()).fence).toBe(fence);
      expect((await stage.order()).waiters).toEqual(holdIds(waiters));
    });

    it('The holding owner’s new hold gets its own lease, and the old one keeps its own', async () => {
      const process = stage.deafProcess();
      const outer = process.line('owner');
      const { endMs } = await outer.hold();
      const reply = await process.line('owner').ask({ leaseMs: 1_000 });
      expect(reply).toMatchObject({ grant: { endMs: reply.nowMs + 1_000 } });
      expect((await stage.inspect()).holds[0]).toMatchObject({ holdId: outer.holdId, endMs });
    });

    itQueues('The owner of a claim that is not renewed yet is granted at once', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const waiter = await process.line('owner').wait();
      await holder.release();
      const { fence } = await waiter.hold();
      expect(await process.line('owner').hold()).toMatchObject({ fence, isClaim: false });
    });
  });

  describe('C4 Every operation is idempotent by hold id', () => {
    it('A repeated acquire returns its grant, and adds nothing', async () => {
      const line = stage.deafProcess().line();
      const grant = await line.hold({ leaseMs: longMs });
      expect(await line.hold({ leaseMs: 2 * longMs })).toEqual(grant);
      expect((await line.try()).status).toBe('granted');
      const { holds } = await stage.inspect();
      expect(holds).toEqual([{ ...grant, owner: line.request.owner, process: line.request.process, mode: 'write' }]);
      await line.release();
      expect((await stage.inspect()).holds).toEqual([]);
    });

    it('Many simultaneous copies of an acquire are one hold', async () => {
      const line = stage.deafProcess().line();
      const grants = await Promise.all(Array.from({ length: 10 }, () => line.hold()));
      for (const grant of grants) expect(grant).toEqual(grants[0]);
      expect((await stage.inspect()).holds).toHaveLength(1);
    });

    it('A repeated re-entry is one hold', async () => {
      const process = stage.deafProcess();
      await process.line('owner').hold();
      const inner = process.line('owner');
      expect(await inner.hold()).toEqual(await inner.hold());
      expect((await stage.inspect()).holds).toHaveLength(2);
    });

    itQueues('A repeated acquire of a waiter keeps its one place', async () => {
      const process = stage.deafProcess();
      await process.line().hold();
      const [first, second] = [await process.line().wait(), await process.line().wait()];
      expect(await first.ask()).toMatchObject({ status: 'queued', isNew: false });
      expect((await stage.order()).waiters).toEqual([first.holdId, second.holdId]);
    });

    itQueues('A repeated acquire of a claim returns the claim, and does not prolong it', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const waiter = await process.line().wait();
      const { claims } = await holder.release();
      const grant = await waiter.hold({ leaseMs: 2 * longMs });
      expect(claims).toMatchObject([grant]);
      expect((await stage.inspect()).holds).toMatchObject([grant]);
    });

    it('A repeated release removes one hold: another hold of the owner stays', async () => {
      const process = stage.deafProcess();
      const [outer, inner] = [process.line('owner'), process.line('owner')];
      await outer.hold();
      await inner.hold();
      expect((await inner.release()).status).toBe('released');
      expect((await inner.release()).status).toBe('absent');
      expect((await stage.order()).holds).toEqual([outer.holdId]);
    });

    itQueues('A repeated release hands off once: the next holder stays', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const [first, second] = [await process.line().wait(), await process.line().wait()];
      await holder.release();
      await holder.release();
      expect(await stage.order()).toEqual({ holds: [first.holdId], waiters: [second.holdId] });
    });

    it('A repeated renewal leaves one hold', async () => {
      const line = stage.deafProcess().line();
      const { fence } = await line.hold();
      await Promise.all([line.renew(fence), line.renew(fence)]);
      expect((await stage.inspect()).holds).toHaveLength(1);
    });

    itQueues('A repeated force release leaves the next holder alone', async () => {
      const process = await stage.process();
      const { fence } = await process.line().hold();
      const waiter = await process.line().wait();
      expect(await stage.store.forceRelease(waiter.request.id, fence)).toBe(true);
      expect(await stage.store.forceRelease(waiter.request.id, fence)).toBe(false);
      expect((await stage.order()).holds).toEqual([waiter.holdId]);
    });
  });
}
