import { goneMs, shortMs } from '../harness.ts';
import type { Contract } from '../stage.ts';

/** C12: processes that let a claim lapse, or no longer poll. */
export function describeLiveness(contract: Contract): void {
  describeLapsed(contract);
  describeSilent(contract);
}

function describeLapsed({ harness, stage, describe, itQueues, expect }: Contract): void {
  describe('C12 A process that let a claim lapse', () => {
    itQueues(
      'A process that let a claim lapse is skipped with its other waiters until it polls, and keeps their places',
      async () => {
        const [one, two] = [await stage.process(), await stage.process()];
        const holder = await one.line().acquired();
        await two.line(undefined, { claimMs: shortMs }).wait();
        const second = await two.line().wait();
        const [next, last] = [await one.line().wait(), await one.line().wait()];
        await holder.release();
        await harness.elapse(shortMs);
        expect(await next.ask()).toMatchObject({ status: 'granted', grant: { isClaim: true } });
        expect((await stage.order()).waiters).toEqual([second.holdId, last.holdId]);
        expect(await second.ask()).toMatchObject({ status: 'queued', isNew: false });
        await next.release();
        expect((await stage.order()).holds).toEqual([second.holdId]);
      },
    );

    itQueues('A process that let a claim lapse is skipped at each hand-off until it polls', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = await one.line().acquired();
      await two.line(undefined, { claimMs: shortMs }).wait();
      const behind = await two.line().wait();
      const [next, last] = [await one.line().wait(), await one.line().wait()];
      await holder.release();
      await harness.elapse(shortMs);
      expect((await next.ask()).status).toBe('granted');
      await next.release();
      expect(await stage.order()).toEqual({ holds: [last.holdId], waiters: [behind.holdId] });
    });

    itQueues(
      'A process that let a claim lapse is no longer skipped after it asked for another hold, although others of its owner still hold',
      async () => {
        const [one, two] = [await stage.process(), await stage.process()];
        const holder = await one.line().acquired();
        const other = await one.line('shared').wait();
        await two.line('shared', { claimMs: shortMs }).wait();
        const second = await two.line().wait();
        await one.line().wait();
        await holder.release();
        await harness.elapse(shortMs);
        await two.line().wait();
        await other.release();
        expect((await stage.order()).holds).toEqual([second.holdId]);
      },
    );

    itQueues(
      'A process that let a claim lapse is no longer skipped after it polled, although others of its owner still hold',
      async () => {
        const [one, two] = [await stage.process(), await stage.process()];
        const holder = await one.line().acquired();
        const other = await one.line('shared').wait();
        await two.line('shared', { claimMs: shortMs }).wait();
        const second = await two.line().wait();
        const next = await one.line().wait();
        await holder.release();
        await harness.elapse(shortMs);
        expect(await second.ask()).toMatchObject({ status: 'queued', isNew: false });
        await other.release();
        expect(await stage.order()).toEqual({ holds: [second.holdId], waiters: [next.holdId] });
      },
    );

    itQueues('A process whose lease ended has let no claim lapse: it has its turn', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = await two.line('owner').acquired();
      const next = await two.line().wait();
      const last = await one.line().wait();
      await two.line('owner').hold({ leaseMs: shortMs });
      await holder.release();
      await harness.elapse(shortMs);
      await last.ask();
      expect(await stage.order()).toEqual({ holds: [next.holdId], waiters: [last.holdId] });
    });

    itQueues(
      'A process that let a claim lapse costs those behind it one claim, not one for each of its waiters',
      async () => {
        const [one, two] = [await stage.process(), await stage.process()];
        const holder = await one.line().acquired();
        for (let count = 0; count < 5; count++) await two.line(undefined, { claimMs: shortMs }).wait();
        const next = await one.line().wait();
        await holder.release();
        await harness.elapse(shortMs);
        expect((await next.ask()).status).toBe('granted');
      },
    );

    itQueues('A process that let a claim lapse is not skipped by its own call', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = await one.line().acquired();
      const first = await two.line(undefined, { claimMs: shortMs }).wait();
      const second = await two.line().wait();
      await holder.release();
      await harness.elapse(shortMs);
      expect(await first.ask()).toMatchObject({ status: 'queued', isNew: true, claims: [{ holdId: second.holdId }] });
    });
  });
}

function describeSilent({ harness, stage, describe, itQueues, expect }: Contract): void {
  describe('C12 A process that has not polled for `livenessMs`', () => {
    itQueues(
      'A process that has not polled loses its entries at the next hand-off, and its claim to the key',
      async () => {
        const process = await stage.process();
        const gone = await stage.process();
        const holder = await process.line().acquired();
        for (let count = 0; count < 3; count++) await gone.line().wait({ livenessMs: shortMs });
        const next = await process.line().wait();
        await harness.elapse(goneMs);
        await holder.release();
        expect(await stage.order()).toEqual({ holds: [next.holdId], waiters: [] });
        expect(await gone.heard()).toEqual([]);
      },
    );

    itQueues('A process that has not polled loses its entry if nobody else waits, too', async () => {
      const holder = await stage.deafProcess().line().acquired();
      const gone = await stage.process();
      await gone.line().wait({ livenessMs: shortMs });
      await harness.elapse(goneMs);
      await holder.release();
      expect(await stage.order()).toEqual({ holds: [], waiters: [] });
      expect(await gone.heard()).toEqual([]);
    });

    itQueues('A process that returns is queued again at the tail', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const gone = await (await stage.process()).line().wait({ livenessMs: shortMs });
      const [next, last] = [await process.line().wait(), await process.line().wait()];
      await harness.elapse(goneMs);
      await holder.release();
      expect(await gone.ask()).toMatchObject({ status: 'queued', isNew: true });
      expect(await stage.order()).toEqual({ holds: [next.holdId], waiters: [last.holdId, gone.holdId] });
    });

    itQueues('A process stays live with everything that it waits for by one poll', async () => {
      const process = await stage.process();
      const other = await stage.process();
      const holder = await process.line().acquired();
      const first = await process.line().wait();
      const lines = [await other.line().wait({ livenessMs: 1 }), await other.line().wait({ livenessMs: 1 })] as const;
      await lines[1].ask();
      await harness.elapse(goneMs);
      await first.release();
      await holder.release();
      expect((await stage.order()).holds).toEqual([lines[0].holdId]);
    });

    itQueues('A later poll never makes a process live for less long', async () => {
      const process = await stage.process();
      const other = await stage.process();
      const holder = await process.line().acquired();
      const waiter = await other.line().wait();
      await waiter.ask({ livenessMs: 1 });
      await harness.elapse(goneMs);
      await holder.release();
      expect((await stage.order()).holds).toEqual([waiter.holdId]);
    });
  });
}
