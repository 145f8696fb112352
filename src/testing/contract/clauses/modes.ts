import { longMs, shortMs } from '../harness.ts';
import { type Contract, holdIds } from '../stage.ts';

/** C19: readers and writers. */
export function describeModes(contract: Contract): void {
  if (contract.has('modes')) describeSharing(contract);
  else describeWithoutModes(contract);
}

function describeWithoutModes({ stage, it, expect }: Contract): void {
  it('C19 Without modes, a reader excludes others as a writer does', async () => {
    const process = stage.deafProcess();
    await process.reader().hold();
    expect((await process.reader().try()).status).toBe('refused');
  });
}

function describeSharing({ has, harness, stage, describe, it, expect }: Contract): void {
  describe('C19 Readers share a key, a writer has it alone', () => {
    it('Readers of any number of owners and processes hold the key at the same time', async () => {
      const lines = [1, 2, 3].map(() => stage.deafProcess().reader());
      for (const line of lines) await line.hold();
      expect((await stage.order()).holds.sort()).toEqual(holdIds(lines).sort());
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
      const holder = await process.line().acquired();
      const row = [process.reader(), process.reader(), process.reader()];
      const writer = process.line();
      const late = process.reader();
      for (const line of [...row, writer, late]) await line.wait();
      const { claims } = await holder.release();
      expect(claims.map(({ holdId }) => holdId).sort()).toEqual(holdIds(row).sort());
      const order = await stage.order();
      expect(order.holds.sort()).toEqual(holdIds(row).sort());
      expect(order.waiters).toEqual([writer.holdId, late.holdId]);
      for (const reader of row) await reader.release();
      expect(await stage.order()).toEqual({ holds: [writer.holdId], waiters: [late.holdId] });
    });

    it('Grants to readers reach the streams of their processes', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = await stage.deafProcess().line().acquired();
      const lines = [await one.reader().wait(), await two.reader().wait()] as const;
      await holder.release();
      const grants = [await one.granted(lines[0]), await two.granted(lines[1])] as const;
      expect(grants[0].fence).toBe(grants[1].fence);
      expect(await one.heard()).toEqual([{ kind: 'granted', grant: grants[0] }]);
      expect(await two.heard()).toEqual([{ kind: 'granted', grant: grants[1] }]);
    });

    it('The readers behind a writer that gives up are granted alongside the holders', async () => {
      const process = await stage.process();
      const holder = await process.reader().acquired();
      const writer = await process.line().wait();
      const readers = [await process.reader().wait(), await process.reader().wait()];
      expect((await writer.release()).status).toBe('cancelled');
      expect((await stage.order()).holds.sort()).toEqual(holdIds([holder, ...readers]).sort());
    });

    it('A reader is granted alongside the holders if only an unreachable process waits', async () => {
      if (!has('reachability')) return;
      const process = await stage.process();
      const holder = await process.reader().acquired();
      const dead = await stage.deafProcess().line().wait();
      const reader = await process.reader().acquired();
      expect(await stage.order()).toEqual({ holds: holdIds([holder, reader]), waiters: [dead.holdId] });
    });

    it('Each reader’s hold has its own lease', async () => {
      const process = stage.deafProcess();
      const long = process.reader();
      await process.reader().hold({ leaseMs: shortMs });
      const { fence } = await long.hold({ leaseMs: longMs });
      await harness.elapse(shortMs);
      expect((await stage.order()).holds).toEqual([long.holdId]);
      expect(await process.line().status({ queue: false })).toBe('refused');
      expect(await long.renew(fence)).toMatchObject({ status: 'renewed' });
    });

    it('Each reader’s hold stays what it is, whatever word its owner begins with', async () => {
      const process = await stage.process();
      const words = ['claim', 'read', 'write', 'live', 'owed', 'granted'];
      const readers = words.map((word) => process.reader(`${word}-1`));
      for (const reader of readers) await reader.hold();
      const { fence } = await readers[0]!.hold();
      for (const reader of readers) {
        for (let count = 0; count < 3; count += 1) expect((await reader.renew(fence)).status).toBe('renewed');
      }
      const { holds } = await stage.inspect();
      expect(holds.map(({ owner, isClaim }) => [owner, isClaim])).toEqual(words.map((word) => [`${word}-1`, false]));
      for (const reader of readers) expect((await reader.release()).status).toBe('released');
      expect(await process.line().status()).toBe('granted');
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
