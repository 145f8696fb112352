import { goneMs, shortMs } from '../harness.ts';
import { type Contract, holdIds, key } from '../stage.ts';

/** C12: processes that do not receive their messages. */
export function describeReachability(contract: Contract): void {
  if (contract.has('reachability')) describeUnreachable(contract);
  else describeWithoutReachability(contract);
}

function describeUnreachable({ harness, stage, describe, itQueues, expect }: Contract): void {
  describe('C12 A process that is unreachable', () => {
    itQueues('A process that is unreachable is skipped; the next live waiter is granted', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const dead = await stage.deafProcess().line().wait();
      const next = await process.line().wait();
      await holder.release();
      expect(await stage.order()).toEqual({ holds: [next.holdId], waiters: [dead.holdId] });
    });

    itQueues('A process that is unreachable is skipped with all its waiters at once', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const dead = stage.deafProcess();
      const lines = [await dead.line().wait(), await dead.line().wait()] as const;
      const next = await process.line().wait();
      await holder.release();
      expect(await stage.order()).toEqual({
        holds: [next.holdId],
        waiters: holdIds(lines),
      });
    });

    itQueues('A process that was unreachable is skipped until it polls, not until it can be reached', async () => {
      const process = await stage.process();
      const lines = [process.line(), process.line(), process.line()] as const;
      await lines[0].hold();
      const late = stage.deafProcess();
      const waiter = await late.line().wait();
      await lines[1].wait();
      await lines[2].wait();
      await lines[0].release();
      await late.listen();
      await lines[1].release();
      expect(await stage.order()).toEqual({ holds: [lines[2].holdId], waiters: [waiter.holdId] });
    });

    itQueues('A process that was skipped keeps its place, and has its turn once it polled', async () => {
      const process = await stage.process();
      const lines = [process.line(), process.line(), process.line()] as const;
      await lines[0].hold();
      const late = stage.deafProcess();
      const waiter = await late.line().wait();
      await lines[1].wait();
      await lines[2].wait();
      await lines[0].release();
      await late.listen();
      expect(await waiter.ask()).toMatchObject({ status: 'queued', isNew: false });
      await lines[1].release();
      expect(await late.granted(waiter)).toMatchObject({ isClaim: true });
      expect((await stage.order()).waiters).toEqual([lines[2].holdId]);
    });

    itQueues('A process is not skipped twice in a row after a poll, although it is still unreachable', async () => {
      const process = await stage.process();
      const lines = [process.line(), process.line(), process.line()] as const;
      await lines[0].hold();
      const deaf = stage.deafProcess();
      const waiters = [await deaf.line().wait(), await deaf.line().wait()] as const;
      await lines[1].wait();
      await lines[2].wait();
      await lines[0].release();
      await waiters[0].ask();
      await lines[1].release();
      expect((await stage.order()).holds).toEqual([waiters[0].holdId]);
      // Its poll finds the grant. From then on it is skipped again.
      expect(await waiters[0].hold()).toMatchObject({ isClaim: true });
      await process.line().try();
      await stage.store.forceRelease(key, (await stage.inspect()).holds[0]!.fence);
      expect(await stage.order()).toEqual({ holds: [lines[2].holdId], waiters: [waiters[1].holdId] });
    });

    itQueues(
      'A process that polled has its turn with all of its readers in a row, though it is unreachable still',
      async () => {
        const process = await stage.process();
        const [holder, next] = [process.line(), process.line()];
        await holder.hold();
        const deaf = stage.deafProcess();
        const readers = [await deaf.reader().wait(), await deaf.reader().wait()] as const;
        await next.wait();
        await holder.release();
        await readers[0].ask();
        await next.release();
        expect(await stage.order()).toEqual({ holds: holdIds(readers), waiters: [] });
      },
    );

    itQueues('The poll after a turn does not make its process live for less long', async () => {
      const process = await stage.process();
      const [holder, next] = [process.line(), process.line()];
      await holder.hold();
      const waiter = await stage.deafProcess().line().wait();
      await next.wait();
      await holder.release();
      await waiter.ask({ livenessMs: 1 });
      await harness.elapse(goneMs);
      await next.release();
      expect((await stage.order()).holds).toEqual([waiter.holdId]);
    });

    itQueues('A process that was skipped also has its turn once it asked for another hold', async () => {
      const process = await stage.process();
      const lines = [process.line(), process.line(), process.line()] as const;
      await lines[0].hold();
      const deaf = stage.deafProcess();
      const waiters = [await deaf.line().wait()];
      await lines[1].wait();
      await lines[2].wait();
      await lines[0].release();
      waiters.push(await deaf.line().wait());
      await lines[1].release();
      expect((await stage.order()).holds).toEqual([waiters[0]?.holdId]);
    });

    itQueues('A process that is unreachable has its turn once it polled after a claim that it let lapse', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = await one.line().acquired();
      const other = await one.line('shared').wait();
      await two.line('shared', { claimMs: shortMs }).wait();
      const waiter = await two.line().wait();
      const next = await one.line().wait();
      await holder.release();
      await two.leave();
      await harness.elapse(shortMs);
      await waiter.ask();
      await other.release();
      expect(await stage.order()).toEqual({ holds: [waiter.holdId], waiters: [next.holdId] });
    });

    itQueues(
      'A process that is unreachable is skipped again if it was granted in between, by its own poll',
      async () => {
        const process = await stage.process();
        const holder = await process.line().acquired();
        const deaf = stage.deafProcess();
        const first = await deaf.line().wait();
        await process.line(undefined, { claimMs: shortMs }).wait();
        const second = await deaf.line().wait();
        const next = await (await stage.process()).line().wait();
        await holder.release();
        // Queued; on a busy machine the claim has expired, and this is the call that is granted.
        await first.ask();
        await harness.elapse(shortMs);
        const { fence } = await first.hold();
        await stage.store.forceRelease(key, fence);
        expect(await stage.order()).toEqual({ holds: [next.holdId], waiters: [second.holdId] });
      },
    );

    itQueues('A process that let a claim lapse while it waited for nothing else is owed no turn', async () => {
      const [process, late] = [await stage.process(), await stage.process()];
      const [holder, next] = [process.line(), process.line()];
      await holder.hold();
      await late.line(undefined, { claimMs: shortMs }).wait();
      await holder.release();
      // Queued; on a busy machine the claim has expired, and it is granted.
      await next.ask();
      const last = await process.line().wait();
      await harness.elapse(shortMs);
      await next.hold();
      await late.leave();
      const dead = await late.line().wait();
      const behind = await process.line().wait();
      await next.release();
      await last.release();
      expect(await stage.order()).toEqual({ holds: [behind.holdId], waiters: [dead.holdId] });
    });

    itQueues('A process that is unreachable is granted by its own calls all the same', async () => {
      const deaf = stage.deafProcess();
      const holder = await deaf.line().acquired();
      const waiter = await deaf.line().wait();
      expect((await holder.release()).claims).toMatchObject([{ holdId: waiter.holdId }]);
    });

    itQueues('A process that is unreachable leaves the key free for a newcomer if nobody else waits', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const dead = await stage.deafProcess().line().wait();
      await holder.release();
      const newcomer = process.line();
      expect((await newcomer.try()).status).toBe('granted');
      expect(await stage.order()).toEqual({ holds: [newcomer.holdId], waiters: [dead.holdId] });
    });
  });
}

/** In such a store, a dead process is detected by its lapsed claim. */
function describeWithoutReachability({ harness, stage, describe, itQueues, expect }: Contract): void {
  describe('C12 A process that is unreachable, in a store that does not know that', () => {
    itQueues(
      'If the store does not know that a process is unreachable, it grants to it in its turn, and the process finds the grant when it polls',
      async () => {
        const process = await stage.process();
        const holder = await process.line().acquired();
        const deaf = await stage.deafProcess().line().wait();
        const next = await process.line().wait();
        await holder.release();
        expect(await stage.order()).toEqual({ holds: [deaf.holdId], waiters: [next.holdId] });
        expect(await deaf.hold()).toMatchObject({ isClaim: true });
      },
    );

    itQueues(
      'If the store does not know that a process is unreachable, it costs the waiters behind it one claim, and is then skipped',
      async () => {
        const process = await stage.process();
        const lines = [process.line(), process.line(), process.line()] as const;
        await lines[0].hold();
        const dead = stage.deafProcess();
        await dead.line(undefined, { claimMs: shortMs }).wait();
        const behind = await dead.line().wait();
        await lines[1].wait();
        await lines[2].wait();
        await lines[0].release();
        await harness.elapse(shortMs);
        expect((await lines[1].ask()).status).toBe('granted');
        await lines[1].release();
        expect(await stage.order()).toEqual({ holds: [lines[2].holdId], waiters: [behind.holdId] });
      },
    );
  });
}
