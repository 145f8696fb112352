import { shortMs } from '../harness.ts';
import { type Contract, key, type Line } from '../stage.ts';

/** C5, C6, C16, C28: who is queued, and in what order. */
export function describeQueue({ harness, stage, describe, it, itQueues, expect }: Contract): void {
  /** To some milliseconds: the time and the lease's end that a quorum tells may be of different servers. */
  const about = (ms: number): unknown => expect.closeTo(ms, -1);

  describe('C5 A key that is not free', () => {
    it('An acquire of a key that is not free is queued once: the reply says whether the store knew of it, and when the lease is over', async () => {
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

    it('A key is free when the longest lease of its owner is over', async () => {
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
      const holder = one.line();
      await holder.hold();
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
      const holder = process.line();
      await holder.hold();
      const lines = Array.from({ length: 30 }, () => process.line());
      await Promise.all(lines.map((line) => line.ask()));
      expect((await stage.order()).waiters).toEqual(lines.map(({ holdId }) => holdId));
    });

    itQueues('Polling does not change the order', async () => {
      const process = await stage.process();
      const holder = process.line();
      await holder.hold();
      const lines = [process.line(), process.line(), process.line()] as const;
      await queueOf(lines);
      await lines[2].ask();
      await lines[1].ask();
      await holder.release();
      expect(await stage.order()).toEqual({ holds: [lines[0].holdId], waiters: [lines[1].holdId, lines[2].holdId] });
    });

    itQueues('The order stays if a waiter in the middle gives up', async () => {
      const process = await stage.process();
      const holder = process.line();
      await holder.hold();
      const lines = [process.line(), process.line(), process.line()] as const;
      await queueOf(lines);
      expect((await lines[0].release()).status).toBe('cancelled');
      await holder.release();
      expect(await stage.order()).toEqual({ holds: [lines[1].holdId], waiters: [lines[2].holdId] });
    });

    for (const queue of [true, false]) {
      itQueues(`A newcomer does not overtake when the lease of the holder is over (queue: ${queue})`, async () => {
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

  describe('C28 Who is not granted is told how many wait before it', () => {
    itQueues(
      'An acquire is told how many wait before it when it is queued, whenever it polls, and when it is refused',
      async () => {
        const process = stage.deafProcess();
        const holder = process.line('holder');
        await holder.hold();
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
    itQueues('One waiter too many is told `full` and leaves nothing', async () => {
      const process = stage.deafProcess();
      const { endMs } = await process.line().hold();
      const waiters = [process.line(), process.line()];
      for (const line of waiters) expect((await line.ask({ maxWaiters: 2 })).status).toBe('queued');
      const reply = await process.line().ask({ maxWaiters: 2 });
      const { nowMs } = reply;
      expect(reply).toMatchObject({ status: 'full', leaseRemainingMs: endMs - nowMs, position: 2, nowMs, claims: [] });
      expect((await stage.order()).waiters).toEqual(waiters.map(({ holdId }) => holdId));
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
