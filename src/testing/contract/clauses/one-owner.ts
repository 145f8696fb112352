import { longMs, shortMs } from '../harness.ts';
import { type Contract, holdIds } from '../stage.ts';

/** C20 to C22: an owner that reads and writes, and the fences of its holds. */
export function describeOneOwner(contract: Contract): void {
  if (contract.has('modes')) {
    describeBothModes(contract);
    describeOneFence(contract);
  }
  describeOtherHolds(contract);
}

function describeBothModes({ harness, stage, describe, it, expect }: Contract): void {
  describe('C20 One owner in both modes', () => {
    it('A writer may also read, and excludes others until its last write hold is gone', async () => {
      const process = await stage.process();
      const [writer, reader] = [process.line('owner'), process.reader('owner')];
      const { fence } = await writer.hold();
      expect((await reader.hold()).fence).toBe(fence);
      expect(await process.reader().status({ queue: false })).toBe('refused');
      const next = await process.reader().wait();
      const last = await process.line().wait();
      await writer.release();
      expect(await stage.order()).toEqual({ holds: holdIds([reader, next]), waiters: [last.holdId] });
    });

    it('The only reading owner may write, before any waiter', async () => {
      const process = await stage.process();
      const [one, two] = [process.reader('owner'), process.reader('owner')];
      await one.hold();
      await two.hold();
      const waiter = await process.line().wait();
      const writer = await process.line('owner').acquired();
      const { holds, waiters } = await stage.order();
      expect([holds.sort(), waiters]).toEqual([holdIds([one, two, writer]).sort(), [waiter.holdId]]);
      expect(await process.reader().status({ queue: false })).toBe('refused');
    });

    for (const queue of [true, false]) {
      it(`An owner that reads alongside others and asks to write is in conflict (queue: ${queue})`, async () => {
        const process = stage.deafProcess();
        const [own, other] = [process.reader('owner'), process.reader()];
        const { endMs } = await own.hold();
        await other.hold({ leaseMs: longMs / 2 });
        const reply = await process.line('owner').ask({ queue });
        const { nowMs } = reply;
        expect(reply).toMatchObject({
          status: 'conflict',
          leaseRemainingMs: endMs - nowMs,
          position: 0,
          nowMs,
          claims: [],
        });
        expect(await stage.order()).toEqual({ holds: holdIds([own, other]), waiters: [] });
      });
    }

    it('An owner’s waiting reader and waiting writer are granted together', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const reader = await process.reader('owner').wait();
      const other = await process.reader().wait();
      const writer = await process.line('owner').wait();
      await holder.release();
      expect(await stage.order()).toEqual({ holds: holdIds([reader, writer]), waiters: [other.holdId] });
    });

    it('A waiting reader is granted alongside other readers, and the owner’s waiting writer is not', async () => {
      const process = await stage.process();
      const other = await process.reader().acquired();
      const before = await process.line().wait();
      const reader = await process.reader('owner').wait();
      const writer = await process.line('owner').wait();
      await before.release();
      expect(await stage.order()).toEqual({
        holds: [other.holdId, reader.holdId],
        waiters: [writer.holdId],
      });
      await other.release();
      expect((await stage.order()).holds.sort()).toEqual(holdIds([reader, writer]).sort());
    });

    it('An owner’s writer that waits while its reader joins others is granted when they are gone', async () => {
      const process = await stage.process();
      const [holder, owner] = [process.reader(), process.line('owner')];
      await holder.hold();
      await owner.wait();
      const reader = process.reader('owner', { priority: 1 });
      await reader.ask();
      await process.line('another').wait();
      expect((await stage.order()).holds).toContain(reader.holdId);
      expect(await owner.ask()).toMatchObject({ status: 'queued', isNew: false });
      await holder.release();
      expect((await stage.order()).holds.sort()).toEqual(holdIds([reader, owner]).sort());
    });

    it('Waiting readers are granted when the lease of the write hold has expired and its owner still reads', async () => {
      const { process, holder, begin } = await stage.shortTurn();
      const next = await process.reader().wait();
      await begin();
      const reader = await process.reader(holder.request.owner).acquired();
      await harness.elapse(shortMs);
      expect(await next.status()).toBe('granted');
      expect((await stage.order()).holds.sort()).toEqual(holdIds([reader, next]).sort());
    });
  });
}

function describeOneFence({ stage, describe, it, expect }: Contract): void {
  describe('C21 All holds of a key have its last fence', () => {
    it('A reader that joins others shares their fence, and the fence rises when all are gone', async () => {
      const process = stage.deafProcess();
      const lines = [process.reader(), process.reader(), process.reader()] as const;
      const { fence } = await lines[0].hold();
      expect((await lines[1].hold()).fence).toBe(fence);
      await lines[0].release();
      expect((await lines[2].hold()).fence).toBe(fence);
      await lines[1].release();
      await lines[2].release();
      expect((await process.reader().hold()).fence).toBeGreaterThan(fence);
    });

    it('The fence rises when a reader becomes the writer, and not again for what the writer adds', async () => {
      const process = stage.deafProcess();
      const { fence } = await process.reader('owner').hold();
      const writer = await process.line('owner').hold();
      expect(writer.fence).toBeGreaterThan(fence);
      expect((await process.line('owner').hold()).fence).toBe(writer.fence);
      expect((await process.reader('owner').hold()).fence).toBe(writer.fence);
      const { holds } = await stage.inspect();
      expect(new Set(holds.map((hold) => hold.fence))).toEqual(new Set([writer.fence]));
    });

    it('A read hold from before is renewed with the fence that it got, and with no other', async () => {
      const process = stage.deafProcess();
      const reader = process.reader('owner');
      const { fence } = await reader.hold();
      const writer = process.line('owner');
      const risen = await writer.hold();
      expect(await reader.renew(fence)).toMatchObject({ status: 'renewed' });
      expect(await reader.renew(risen.fence + 1)).toEqual({ status: 'lost' });
      expect(await writer.renew(fence)).toEqual({ status: 'lost' });
      await writer.release();
      expect(await reader.renew(fence)).toMatchObject({ status: 'renewed' });
      const late = process.reader();
      expect((await late.hold()).fence).toBe(risen.fence);
      expect(await late.renew(fence)).toEqual({ status: 'lost' });
    });

    it('No two owners ever write under one fence, even if they hand the key over by reading', async () => {
      const process = stage.deafProcess();
      const [write, read] = [process.line('one'), process.reader('one')];
      const { fence } = await write.hold();
      await read.hold();
      await write.release();
      const other = process.reader('other');
      expect((await other.hold()).fence).toBe(fence);
      await read.release();
      expect((await process.line('other').hold()).fence).toBeGreaterThan(fence);
    });

    it('The fence rises for a writer that is handed the key alongside its owner’s reads', async () => {
      const process = await stage.process();
      const [holder, writer] = [process.reader(), process.line('owner')];
      const { fence } = await holder.hold();
      await writer.wait();
      const reader = process.reader('owner', { priority: 1 });
      await reader.ask();
      await process.line().wait();
      const { claims } = await holder.release();
      const claim = claims.find(({ holdId }) => holdId === writer.holdId);
      expect(claim?.fence).toBeGreaterThan(fence);
      // The reader has a claim, whose fence rose.
      expect(await reader.renew(fence)).toMatchObject({ status: 'renewed' });
    });

    it('A forced release that names the fence takes every reader', async () => {
      const process = await stage.process();
      const lines = [process.reader(), process.reader()] as const;
      const { fence } = await lines[0].hold();
      await lines[1].hold();
      expect(await stage.store.forceRelease(lines[0].request.id, fence)).toBe(true);
      expect((await stage.order()).holds).toEqual([]);
      expect(await process.heard()).toEqual(lines.map(({ holdId }) => ({ kind: 'lost', holdId })));
    });
  });
}

function describeOtherHolds({ has, stage, describe, it, itQueues, expect }: Contract): void {
  describe('C22 A grant has the number of its owner’s other holds', () => {
    it('A grant counts the owner’s other holds over all processes, and the same at each repeat', async () => {
      const lines = [1, 2, 3].map(() => stage.deafProcess().line('owner'));
      const replies = [];
      for (const line of lines) replies.push(await line.ask());
      expect(replies).toMatchObject([beside(0, 0), beside(1, 1), beside(2, 2)]);
      expect(await lines[0]!.ask()).toMatchObject(beside(2, 2));
      await lines[1]!.release();
      expect(await lines[0]!.ask()).toMatchObject(beside(1, 1));
    });

    it('A grant does not count other owners’ readers', async () => {
      const process = stage.deafProcess();
      if (stage.store.capabilities.modes) await process.reader().hold();
      expect(await process.reader().ask()).toMatchObject(beside(0, 0));
    });

    if (has('modes')) {
      it('A reader does not count the owner’s other readers as equals, but its writer and those that it enters', async () => {
        const [one, two] = [stage.deafProcess(), stage.deafProcess()];
        const reader = one.reader('T/-');
        expect(await reader.ask()).toMatchObject(beside(0, 0));
        expect(await two.reader('T/-').ask()).toMatchObject(beside(1, 0));
        const other = one.line('U/-', { id: 'other' });
        expect(await other.ask()).toMatchObject(beside(0, 0));
        expect(await two.reader('U/-', { id: 'other' }).ask()).toMatchObject(beside(1, 1));
        expect(await one.reader('U/-', { id: 'other' }).ask()).toMatchObject(beside(2, 1));
        // To write, each of them is in the way.
        expect(await other.ask()).toMatchObject(beside(2, 2));
      });

      it('A reader beneath the writer of an ancestor does not count the other readers beneath it as equals', async () => {
        const process = stage.deafProcess();
        await process.line('T').hold();
        expect(await process.reader('T/-').ask()).toMatchObject(beside(1, 0));
        expect(await process.reader('T/-').ask()).toMatchObject(beside(2, 0));
        expect(await process.line('T/-').ask()).toMatchObject(beside(3, 2));
        expect(await process.reader('T/-').ask()).toMatchObject(beside(4, 1));
      });

      itQueues('Readers of one owner that are granted together do not count each other as equals', async () => {
        const [one, two] = [await stage.process(), await stage.process()];
        const holder = await stage.deafProcess().line().acquired();
        const told = [await one.reader('owner').wait(), await one.reader('owner').wait()];
        const named = [await two.reader('owner').wait(), await two.reader('owner').wait()];
        await holder.release();
        for (const line of told) expect({ grant: await one.granted(line) }).toMatchObject(beside(3, 0));
        expect(await named[0]!.ask()).toMatchObject({
          ...beside(3, 0),
          claims: [{ holdId: named[1]!.request.holdId, ...beside(3, 0).grant }],
        });
      });
    }

    itQueues('Waiters of one owner that are granted together are counted for each other in the stream', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = await stage.deafProcess().line().acquired();
      const [first, second] = [await one.line('owner').wait(), await two.line('owner').wait()];
      await holder.release();
      for (const grant of [await one.granted(first), await two.granted(second)])
        expect({ grant }).toMatchObject(beside(1, 1));
    });

    itQueues('Waiters of one owner that are granted together are counted for each other in the reply', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const waiters = [await process.line('owner').wait(), await process.line('owner').wait()];
      const named = holdIds(waiters).map((holdId) => ({ holdId, ...beside(1, 1).grant }));
      expect((await holder.release()).claims).toMatchObject(named);
      // The poll names the other claim again.
      expect(await waiters[0]!.ask()).toMatchObject({ ...beside(1, 1), claims: [named[1]] });
    });

    itQueues(
      'The grant of a waiter counts the ancestor that is granted with it, and the ancestor’s grant counts nobody',
      async () => {
        const [one, two] = [await stage.process(), await stage.process()];
        const holder = await stage.deafProcess().line().acquired();
        const [outer, inner] = [await one.line('T').wait(), await two.line('T/1').wait()];
        await holder.release();
        expect({ grant: await one.granted(outer) }).toMatchObject(beside(0, 0));
        expect({ grant: await two.granted(inner) }).toMatchObject(beside(1, 0));
      },
    );
  });
}

/** A grant with these numbers of other holds of its family, and of those of its owner that exclude it. */
function beside(otherHolds: number, equalHolds: number) {
  return { grant: { otherHolds, equalHolds } };
}
