import type { Contract } from '../stage.ts';

/** C6: whose turn comes first. */
export function describePriority({ harness, stage, describe, it, expect }: Contract): void {
  if (harness.lacks?.includes('queue')) return;
  describe('C6 With priorities', () => {
    it('The higher priority is first, and within one priority the earlier arrival', async () => {
      const process = await stage.process();
      const holder = process.line();
      await holder.hold();
      const priorities = [0, 100, -100, 1, 0, 1, -100, 100];
      const lines = priorities.map((priority) => process.line(undefined, { priority }));
      for (const line of lines) await line.wait();
      const sorted = [1, 7, 3, 5, 0, 4, 2, 6].map((i) => lines[i]!);
      const { waiters } = await stage.inspect();
      expect(waiters.map(({ holdId }) => holdId)).toEqual(sorted.map(({ holdId }) => holdId));
      expect(waiters.map(({ priority }) => priority)).toEqual([...priorities].sort((a, b) => b - a));
      let last = holder;
      for (const line of sorted) {
        await last.release();
        expect((await stage.order()).holds).toEqual([line.holdId]);
        last = line;
      }
    });

    it('A poll keeps the place, and reports nothing new', async () => {
      const process = await stage.process();
      await process.line().hold();
      const [low, high] = [process.line(), process.line(undefined, { priority: 5 })] as const;
      await low.wait();
      await high.wait();
      expect(await high.ask()).toMatchObject({ status: 'queued', isNew: false });
      expect(await low.ask()).toMatchObject({ status: 'queued', isNew: false });
      expect((await stage.order()).waiters).toEqual([high.holdId, low.holdId]);
    });

    it('The highest priority does not enter before the holder, and can be cancelled as any other', async () => {
      const process = await stage.process();
      const holder = process.line();
      await holder.hold();
      const waiter = await process.line().wait();
      const high = await process.line(undefined, { priority: 100 }).wait();
      expect(await stage.order()).toEqual({ holds: [holder.holdId], waiters: [high.holdId, waiter.holdId] });
      expect((await high.release()).status).toBe('cancelled');
      await holder.release();
      expect(await stage.order()).toEqual({ holds: [waiter.holdId], waiters: [] });
    });

    if (!harness.lacks?.includes('modes')) {
      it('A reader that comes before a waiting writer reads at once beside the others, and no other reader does', async () => {
        const process = await stage.process();
        const reading = process.reader();
        const { fence } = await reading.hold();
        const writer = await process.line().wait();
        expect(await process.reader(undefined, { priority: 1 }).status({ queue: false })).toBe('refused');
        const urgent = process.reader(undefined, { priority: 1 });
        expect(await urgent.hold()).toMatchObject({ fence, isClaim: false });
        const later = await process.reader().wait();
        expect(await stage.order()).toEqual({
          holds: [reading.holdId, urgent.holdId],
          waiters: [writer.holdId, later.holdId],
        });
        await reading.release();
        await urgent.release();
        expect((await stage.order()).holds).toEqual([writer.holdId]);
      });
    }

    it('A high priority that arrives when the key is free and others wait does not overtake the queue by arriving', async () => {
      const process = await stage.process();
      const holder = process.line();
      await holder.hold();
      const waiter = await process.line().wait();
      await holder.release();
      expect(await process.line(undefined, { priority: 100 }).status({ queue: false })).toBe('refused');
      expect((await stage.order()).holds).toEqual([waiter.holdId]);
    });
  });
}
