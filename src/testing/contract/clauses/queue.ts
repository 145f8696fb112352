import { shortMs } from '../harness.ts';
import { type Contract, holdIds, key, type Line } from '../stage.ts';

/** C5, C6, C16, C28: the queue and its order. */
export function describeQueue({ harness, stage, describe, it, itQueues, expect }: Contract): void {
  /** To some milliseconds: the time and the lease's end of a quorum may be of different servers. */
  const about = (ms: number): unknown => expect.closeTo(ms, -1);

  describe('C5 A key that is not free', () => {
    it('An acquire of a key that is not free is queued once: the reply shows whether the store knew it, and when the lease ends', async () => {
      const process = stage.deafProcess();
      const { endMs } = await process.line().hold();
      const waiter = process.line();
      const first = await waiter.ask();
      const { nowMs } = first;
      expect(first).toMatchObject({
        status: 'queued',
        isNew: true,
        leaseRemainingMs: about(endMs - nowMs),
        position: 0,
        nowMs,
        claims: [],
      });
      expect(await waiter.ask()).toMatchObject({ status: 'queued', isNew: false });
      if (stage.store.capabilities.queue) expect((await stage.order()).waiters).toEqual([waiter.holdId]);
      await waiter.release();
    });

    it('An acquire without `queue` is refused, and nothing of it stays', async () => {
      const process = stage.deafProcess();
      const holder = process.line();
      const { endMs } = await holder.hold();
      const reply = await process.line().try();
      const { nowMs } = reply;
      expect(reply).toMatchObject({
        status: 'refused',
        leaseRemainingMs: about(endMs - nowMs),
        position: 0,
        nowMs,
        claims: [],
      });
      expect(await stage.order()).toEqual({ holds: [holder.holdId], waiters: [] });
      expect((await holder.release()).claims).toEqual([]);
      expect(await stage.order()).toEqual({ holds: [], waiters: [] });
    });

    it('A key is free when the longest lease of its owner has expired', async () => {
      const process = stage.deafProcess();
      const { endMs } = await process.line('owner').hold({ leaseMs: 50_000 });
      await process.line('owner').hold({ leaseMs: 10_000 });
      const reply = await process.line().try();
      expect(reply).toMatchObject({ status: 'refused', leaseRemainingMs: about(endMs - reply.nowMs) });
    });
  });

  describe('C6 First in, first out', () => {
    async function queueOf(lines: readonly Line[]): Promise<void> {
      for (const line of lines) await line.wait();
    }

    itQueues('Waiters of several processes are served first in, first out, one release at a time', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const lines = [one, two, two, one, two].map((process) => process.line());
      const holder = await one.line().acquired();
      await queueOf(lines);
      let last = holder;
      for (const line of lines) {
        await last.release();
        expect((await stage.order()).holds).toEqual([line.holdId]);
        last = line;
      }
      await last.release();
      expect(await stage.order()).toEqual({ holds: [], waiters: [] });
    });

    itQueues('Calls that were sent together are served in the order in which they were sent', async () => {
      const process = await stage.process();
      await process.line().hold();
      const lines = Array.from({ length: 30 }, () => process.line());
      await Promise.all(lines.map((line) => line.ask()));
      expect((await stage.order()).waiters).toEqual(holdIds(lines));
    });

    itQueues('Polling does not change the order', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const lines = [process.line(), process.line(), process.line()] as const;
      await queueOf(lines);
      await lines[2].ask();
      await lines[1].ask();
      await holder.release();
      expect(await stage.order()).toEqual({ holds: [lines[0].holdId], waiters: [lines[1].holdId, lines[2].holdId] });
    });

    itQueues('The order stays if a waiter in the middle gives up', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const lines = [process.line(), process.line(), process.line()] as const;
      await queueOf(lines);
      expect((await lines[0].release()).status).toBe('cancelled');
      await holder.release();
      expect(await stage.order()).toEqual({ holds: [lines[1].holdId], waiters: [lines[2].holdId] });
    });

    for (const queue of [true, false]) {
      itQueues(`A newcomer does not overtake when the lease of the holder has expired (queue: ${queue})`, async () => {
        const { begin } = await stage.shortTurn();
        const process = await stage.process();
        const waiter = await process.line().wait();
        await begin();
        await harness.elapse(shortMs);
        const newcomer = (await stage.process()).line();
        expect((await newcomer.ask({ queue })).status).toBe(queue ? 'queued' : 'refused');
        expect((await stage.order()).holds).toEqual([waiter.holdId]);
        expect(await process.granted(waiter)).toMatchObject({ isClaim: true });
      });
    }

    itQueues('The old holder, back after its lease, does not overtake the waiters', async () => {
      const { holder, begin } = await stage.shortTurn();
      const waiter = await (await stage.process()).line().wait();
      await begin();
      await harness.elapse(shortMs);
      expect(await holder.ask()).toMatchObject({ status: 'queued', isNew: true });
      expect(await stage.order()).toEqual({ holds: [waiter.holdId], waiters: [holder.holdId] });
    });
  });

  describe('C28 A reply without a grant has the number of waiters ahead', () => {
    itQueues(
      'The reply to an acquire has the number of waiters ahead when it is queued, whenever it polls, and when it is refused',
      async () => {
        const process = stage.deafProcess();
        await process.line('holder').hold();
        const lines = [process.line(), process.line(), process.line()] as const;
        for (const [position, line] of lines.entries())
          expect(await line.ask()).toMatchObject({ status: 'queued', position });
        expect(await lines[2].ask()).toMatchObject({ status: 'queued', position: 2 });
        expect(await process.line().try()).toMatchObject({ status: 'refused', position: 3 });
        expect(await lines[1].try()).toMatchObject({ status: 'refused', position: 1 });
        await lines[0].release();
        expect(await lines[2].ask()).toMatchObject({ status: 'queued', position: 1 });
        expect(await process.line().ask({ maxWaiters: 2 })).toMatchObject({ status: 'full', position: 2 });
      },
    );

    itQueues('A waiter with a higher priority has fewer before it', async () => {
      const process = stage.deafProcess();
      await process.line().hold();
      const [first, second] = [await process.line().wait(), process.line(undefined, { priority: 1 })];
      expect(await second.ask()).toMatchObject({ status: 'queued', position: 0 });
      expect(await first.ask()).toMatchObject({ status: 'queued', position: 1 });
    });

    itQueues('Waiters are counted in the order of the queue, whichever process they are of', async () => {
      const [one, two] = [stage.deafProcess(), stage.deafProcess()];
      await one.line().hold();
      const lines = [one, two, one, two].map((process) => process.line());
      for (const [position, line] of lines.entries())
        expect(await line.ask()).toMatchObject({ status: 'queued', position });
    });
  });

  describe('C16 A queue of `maxWaiters` takes no more', () => {
    itQueues('One waiter too many gets `full` and leaves nothing', async () => {
      const process = stage.deafProcess();
      const { endMs } = await process.line().hold();
      const waiters = [process.line(), process.line()];
      for (const line of waiters) expect((await line.ask({ maxWaiters: 2 })).status).toBe('queued');
      const reply = await process.line().ask({ maxWaiters: 2 });
      const { nowMs } = reply;
      expect(reply).toMatchObject({ status: 'full', leaseRemainingMs: endMs - nowMs, position: 2, nowMs, claims: [] });
      expect((await stage.order()).waiters).toEqual(holdIds(waiters));
    });

    itQueues('A waiter of a full queue stays, and may poll', async () => {
      const process = stage.deafProcess();
      await process.line().hold();
      const waiter = await process.line().wait();
      expect(await waiter.ask({ maxWaiters: 1 })).toMatchObject({ status: 'queued', isNew: false });
    });

    itQueues('A place that was left in a full queue is taken again', async () => {
      const process = stage.deafProcess();
      await process.line().hold();
      const first = await process.line().wait({ maxWaiters: 1 });
      expect((await process.line().ask({ maxWaiters: 1 })).status).toBe('full');
      await first.release();
      expect((await process.line().ask({ maxWaiters: 1 })).status).toBe('queued');
    });

    itQueues('Re-entry needs no place in a full queue', async () => {
      const process = stage.deafProcess();
      await process.line('owner').hold();
      await process.line().wait({ maxWaiters: 1 });
      expect((await process.line('owner').ask({ maxWaiters: 1 })).status).toBe('granted');
    });

    itQueues('The limit of waiters is of one key', async () => {
      const process = stage.deafProcess();
      for (const id of [key, 'order:43']) {
        await process.line(undefined, { id }).hold();
        expect((await process.line(undefined, { id }).ask({ maxWaiters: 1 })).status).toBe('queued');
      }
    });
  });
}

/** C6: the order of turns. */
export function describePriority({ has, stage, describe, it, expect }: Contract): void {
  if (!has('queue')) return;
  describe('C6 With priorities', () => {
    it('The higher priority is first, and within one priority the earlier arrival', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const priorities = [0, 100, -100, 1, 0, 1, -100, 100];
      const lines = priorities.map((priority) => process.line(undefined, { priority }));
      for (const line of lines) await line.wait();
      const sorted = [1, 7, 3, 5, 0, 4, 2, 6].map((i) => lines[i]!);
      const { waiters } = await stage.inspect();
      expect(waiters.map(({ holdId }) => holdId)).toEqual(holdIds(sorted));
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
      const holder = await process.line().acquired();
      const waiter = await process.line().wait();
      const high = await process.line(undefined, { priority: 100 }).wait();
      expect(await stage.order()).toEqual({ holds: [holder.holdId], waiters: [high.holdId, waiter.holdId] });
      expect((await high.release()).status).toBe('cancelled');
      await holder.release();
      expect(await stage.order()).toEqual({ holds: [waiter.holdId], waiters: [] });
    });

    if (has('modes')) {
      it('A reader that is ahead of a waiting writer reads at once alongside the others, and no other reader does', async () => {
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
      const holder = await process.line().acquired();
      const waiter = await process.line().wait();
      await holder.release();
      expect(await process.line(undefined, { priority: 100 }).status({ queue: false })).toBe('refused');
      expect((await stage.order()).holds).toEqual([waiter.holdId]);
    });
  });
}
