import type { Contract, Line } from '../../support/stores/store-stage.ts';
import { longMs, shortMs } from './harness.ts';

/** C19 to C22: readers and writers. */
export function describeModes(contract: Contract): void {
  if (contract.harness.lacks?.includes('modes')) describeWithoutModes(contract);
  else {
    describeSharing(contract);
    describeOneOwner(contract);
    describeOneFence(contract);
  }
  describeOtherHolds(contract);
}

const ids = (lines: readonly Line[]): string[] => lines.map(({ holdId }) => holdId);

function describeWithoutModes({ stage }: Contract): void {
  it('C19 Without modes, a reader excludes others as a writer does', async () => {
    const process = stage.deafProcess();
    await process.reader().hold();
    expect((await process.reader().try()).status).toBe('refused');
  });
}

function describeSharing({ harness, stage }: Contract): void {
  describe('C19 Readers share a key, a writer has it alone', () => {
    it('Readers of any number of owners and processes hold the key at the same time', async () => {
      const lines = [1, 2, 3].map(() => stage.deafProcess().reader());
      for (const line of lines) await line.hold();
      expect((await stage.order()).holds.sort()).toEqual(ids(lines).sort());
    });

    it('A writer waits for every reader, and a reader for the writer', async () => {
      const process = await stage.process();
      const readers = [process.reader(), process.reader()] as const;
      for (const reader of readers) await reader.hold();
      const writer = process.line();
      expect(await writer.status({ queue: false })).toBe('refused');
      await writer.wait();
      await readers[0].release();
      expect((await stage.order()).waiters).toEqual([writer.holdId]);
      await readers[1].release();
      const late = await process.reader().wait();
      expect(await stage.order()).toEqual({ holds: [writer.holdId], waiters: [late.holdId] });
      await writer.release();
      expect((await stage.order()).holds).toEqual([late.holdId]);
    });

    it('A reader never overtakes a waiting writer, not by a try either', async () => {
      const process = await stage.process();
      await process.reader().hold();
      const writer = await process.line().wait();
      expect(await process.reader().status({ queue: false })).toBe('refused');
      const late = await process.reader().wait();
      expect((await stage.order()).waiters).toEqual([writer.holdId, late.holdId]);
    });

    it('Readers in a row are granted together, and those behind the next writer are not', async () => {
      const process = await stage.process();
      const holder = process.line();
      await holder.hold();
      const row = [process.reader(), process.reader(), process.reader()];
      const writer = process.line();
      const late = process.reader();
      for (const line of [...row, writer, late]) await line.wait();
      const { claims } = await holder.release();
      expect(claims.map(({ holdId }) => holdId).sort()).toEqual(ids(row).sort());
      const order = await stage.order();
      expect(order.holds.sort()).toEqual(ids(row).sort());
      expect(order.waiters).toEqual([writer.holdId, late.holdId]);
      for (const reader of row) await reader.release();
      expect(await stage.order()).toEqual({ holds: [writer.holdId], waiters: [late.holdId] });
    });

    it('Grants to readers reach the streams of their processes', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = stage.deafProcess().line();
      await holder.hold();
      const lines = [await one.reader().wait(), await two.reader().wait()] as const;
      await holder.release();
      const grants = [await one.granted(lines[0]), await two.granted(lines[1])] as const;
      expect(grants[0].fence).toBe(grants[1].fence);
      expect(await one.heard()).toEqual([{ kind: 'granted', grant: grants[0] }]);
      expect(await two.heard()).toEqual([{ kind: 'granted', grant: grants[1] }]);
    });

    it('The readers behind a writer that gives up are granted beside the holders', async () => {
      const process = await stage.process();
      const holder = process.reader();
      await holder.hold();
      const writer = await process.line().wait();
      const readers = [await process.reader().wait(), await process.reader().wait()];
      expect((await writer.release()).status).toBe('cancelled');
      expect((await stage.order()).holds.sort()).toEqual(ids([holder, ...readers]).sort());
    });

    it('A reader comes in beside the holders if only an unreachable process waits', async () => {
      if (harness.lacks?.includes('reachability')) return;
      const process = await stage.process();
      const holder = process.reader();
      await holder.hold();
      const dead = await stage.deafProcess().line().wait();
      const reader = process.reader();
      await reader.hold();
      expect(await stage.order()).toEqual({ holds: ids([holder, reader]), waiters: [dead.holdId] });
    });

    it('Each reader’s hold has a lease of its own', async () => {
      const process = stage.deafProcess();
      const long = process.reader();
      await process.reader().hold({ leaseMs: shortMs });
      const { fence } = await long.hold({ leaseMs: longMs });
      await harness.elapse(shortMs);
      expect((await stage.order()).holds).toEqual([long.holdId]);
      expect(await process.line().status({ queue: false })).toBe('refused');
      expect(await long.renew(fence)).toMatchObject({ status: 'renewed' });
    });

    it('Readers are reported with holds and waiters', async () => {
      const process = stage.deafProcess();
      await process.reader().hold();
      await process.line().wait();
      await process.reader().wait();
      const { holds, waiters } = await stage.inspect();
      expect(holds.map(({ mode }) => mode)).toEqual(['read']);
      expect(waiters.map(({ mode }) => mode)).toEqual(['write', 'read']);
    });
  });
}

function describeOneOwner({ harness, stage }: Contract): void {
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
      expect(await stage.order()).toEqual({ holds: ids([reader, next]), waiters: [last.holdId] });
    });

    it('The only reading owner may write, before any waiter', async () => {
      const process = await stage.process();
      const [one, two] = [process.reader('owner'), process.reader('owner')];
      await one.hold();
      await two.hold();
      const waiter = await process.line().wait();
      const writer = process.line('owner');
      await writer.hold();
      expect(await stage.order()).toEqual({ holds: ids([one, two, writer]), waiters: [waiter.holdId] });
      expect(await process.reader().status({ queue: false })).toBe('refused');
    });

    it.each([true, false])(
      'An owner that reads beside others and asks to write is in conflict (queue: %s)',
      async (queue) => {
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
        expect(await stage.order()).toEqual({ holds: ids([own, other]), waiters: [] });
      },
    );

    it('An owner’s waiting reader and waiting writer are granted together', async () => {
      const process = await stage.process();
      const holder = process.line();
      await holder.hold();
      const reader = await process.reader('owner').wait();
      const other = await process.reader().wait();
      const writer = await process.line('owner').wait();
      await holder.release();
      expect(await stage.order()).toEqual({ holds: ids([reader, writer]), waiters: [other.holdId] });
    });

    it('A waiting reader is granted beside other readers, and the owner’s waiting writer is not', async () => {
      const process = await stage.process();
      const other = process.reader();
      await other.hold();
      const before = await process.line().wait();
      const reader = await process.reader('owner').wait();
      const writer = await process.line('owner').wait();
      await before.release();
      expect(await stage.order()).toEqual({
        holds: [other.holdId, reader.holdId],
        waiters: [writer.holdId],
      });
      await other.release();
      expect((await stage.order()).holds).toEqual([reader.holdId, writer.holdId]);
    });

    it('An owner’s writer that waits while its reader comes in beside others is granted when they are gone', async () => {
      const process = await stage.process();
      const [holder, owner] = [process.reader(), process.line('owner')];
      await holder.hold();
      await owner.wait();
      const reader = await process.reader('owner', { priority: 1 }).wait();
      await process.line('another').wait();
      expect((await stage.order()).holds).toContain(reader.holdId);
      expect(await owner.ask()).toMatchObject({ status: 'queued', isNew: false });
      await holder.release();
      expect((await stage.order()).holds).toEqual(ids([reader, owner]));
    });

    it('Waiting readers come in when the lease of the write hold is over and its owner still reads', async () => {
      const { process, holder, begin } = await stage.shortTurn();
      const next = await process.reader().wait();
      await begin();
      const reader = process.reader(holder.request.owner);
      await reader.hold();
      await harness.elapse(shortMs);
      expect(await next.status()).toBe('granted');
      expect((await stage.order()).holds.sort()).toEqual(ids([reader, next]).sort());
    });
  });
}

function describeOneFence({ stage }: Contract): void {
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

    it('The fence rises for a writer that is handed the key beside its owner’s reads', async () => {
      const process = await stage.process();
      const [holder, writer] = [process.reader(), process.line('owner')];
      const { fence } = await holder.hold();
      await writer.wait();
      const reader = await process.reader('owner', { priority: 1 }).wait();
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

function describeOtherHolds({ stage }: Contract): void {
  describe('C22 A grant tells how many other holds its owner has', () => {
    it('A grant counts the owner’s other holds over all processes, and the same at each repeat', async () => {
      const lines = [1, 2, 3].map(() => stage.deafProcess().line('owner'));
      const replies = [];
      for (const line of lines) replies.push(await line.ask());
      expect(replies).toMatchObject([{ otherHolds: 0 }, { otherHolds: 1 }, { otherHolds: 2 }]);
      expect(await lines[0]!.ask()).toMatchObject({ otherHolds: 2 });
      await lines[1]!.release();
      expect(await lines[0]!.ask()).toMatchObject({ otherHolds: 1 });
    });

    it('A grant does not count other owners’ readers', async () => {
      const process = stage.deafProcess();
      if (stage.store.capabilities.modes) await process.reader().hold();
      expect(await process.reader().ask()).toMatchObject({ otherHolds: 0 });
    });
  });
}
