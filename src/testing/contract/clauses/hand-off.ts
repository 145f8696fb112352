import type { StoreMessage } from '../../../core/model/store.ts';
import { shortMs } from '../harness.ts';
import { type Contract, holdIds, key } from '../stage.ts';

/** C7, C14, C15: how the key is handed on. */
export function describeHandOff({ harness, stage, describe, it, itQueues, expect }: Contract): void {
  describe("C7 The release of an owner's last hold makes the next waiter the holder", () => {
    itQueues('The next waiter is granted in the same step, with a greater fence and a claim of `claimMs`', async () => {
      const process = await stage.process();
      const holder = process.line();
      const { fence } = await holder.hold();
      const waiter = await process.line(undefined, { claimMs: 4_321 }).wait();
      const reply = await holder.release();
      const { holds } = await stage.inspect();
      expect(holds).toMatchObject([{ holdId: waiter.holdId, isClaim: true, endMs: reply.nowMs + 4_321 }]);
      expect(holds[0]!.fence).toBeGreaterThan(fence);
    });

    itQueues('The grant of a waiter is in the reply if its own process releases, and not in the stream', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const waiter = await process.line().wait();
      const { status, claims } = await holder.release();
      expect(status).toBe('released');
      expect(claims).toEqual([expect.objectContaining({ holdId: waiter.holdId, isClaim: true })]);
      expect(await process.heard()).toEqual([]);
    });

    itQueues(
      'The grant of a waiter is in the stream of its process if another one releases, and not in the reply',
      async () => {
        const [one, two] = [await stage.process(), await stage.process()];
        const holder = await one.line().acquired();
        const waiter = await two.line().wait();
        expect((await holder.release()).claims).toEqual([]);
        const [hold] = (await stage.inspect()).holds;
        const { owner, process: _, mode: __, ...grant } = hold!;
        expect(owner).toBe(waiter.request.owner);
        expect(await two.heard()).toMatchObject([{ kind: 'granted', grant }]);
        expect(await one.heard()).toEqual([]);
      },
    );

    itQueues('The grant of a waiter is never delivered from inside the call', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = await one.line().acquired();
      const waiter = await two.line().wait();
      const reply = holder.release();
      expect(two.messages).toEqual([]);
      await reply;
      await two.granted(waiter);
    });

    itQueues('The key is handed off only when the last hold of the owner is gone', async () => {
      const process = await stage.process();
      const lines = [process.line('owner'), process.line('owner')] as const;
      for (const line of lines) await line.hold();
      const waiter = await process.line().wait();
      expect((await lines[0].release()).claims).toEqual([]);
      expect((await lines[1].release()).claims).toMatchObject([{ holdId: waiter.holdId }]);
    });

    itQueues('The key is handed to one waiter: the others get no message', async () => {
      const [one, two, three] = [await stage.process(), await stage.process(), await stage.process()];
      const holder = await one.line().acquired();
      await two.line().wait();
      await three.line().wait();
      await holder.release();
      expect(await two.heard()).toHaveLength(1);
      expect(await three.heard()).toEqual([]);
    });

    itQueues('A claim that is released unused is handed off, too', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const [first, second] = [await process.line().wait(), await process.line().wait()];
      await holder.release();
      expect((await first.release()).claims).toMatchObject([{ holdId: second.holdId }]);
    });

    itQueues('A cancelled waiter leaves the holder alone', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const [first, second] = [await process.line().wait(), await process.line().wait()];
      expect((await first.release()).claims).toEqual([]);
      expect(await stage.order()).toEqual({ holds: [holder.holdId], waiters: [second.holdId] });
    });
  });

  describe('C14 Waiters of the owner that was just granted are granted with it', () => {
    itQueues('Waiters of one owner are granted with one fence, whatever stands between them', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const first = await process.line('owner').wait();
      const other = await process.line().wait();
      const second = await process.line('owner').wait();
      const { claims } = await holder.release();
      expect(claims.map(({ holdId }) => holdId)).toEqual([first.holdId, second.holdId]);
      expect(claims[1]!.fence).toBe(claims[0]!.fence);
      expect((await stage.order()).waiters).toEqual([other.holdId]);
    });

    itQueues(
      'Waiters of one owner are granted together, even if one of them gave up and another joined after that',
      async () => {
        const process = await stage.process();
        const holder = await process.line().acquired();
        const lines = [];
        for (let count = 0; count < 3; count++) lines.push(await process.line('owner').wait());
        await lines.shift()?.release();
        lines.push(await process.line('owner').wait());
        await holder.release();
        expect(await stage.order()).toEqual({ holds: holdIds(lines), waiters: [] });
      },
    );

    itQueues('Waiters of one owner each get a separate claim in the stream of their process', async () => {
      const [one, two, three] = [await stage.process(), await stage.process(), await stage.process()];
      const holder = await one.line().acquired();
      const first = await two.line('owner', { claimMs: 5_000 }).wait();
      const second = await three.line('owner', { claimMs: 7_000 }).wait();
      await holder.release();
      const [a, b] = [await two.granted(first), await three.granted(second)];
      expect(b.fence).toBe(a.fence);
      expect(b.endMs - a.endMs).toBe(2_000);
    });

    itQueues('The key is free for others when all holds of the owner are released', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const mine = [await process.line('owner').wait(), await process.line('owner').wait()] as const;
      const other = await process.line().wait();
      await holder.release();
      await mine[0].release();
      expect(await stage.order()).toEqual({ holds: [mine[1].holdId], waiters: [other.holdId] });
      expect((await mine[1].release()).claims).toMatchObject([{ holdId: other.holdId }]);
    });

    itQueues('A waiter that gave up is not granted with the others of its owner', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const lines = [await process.line('owner').wait(), await process.line('owner').wait()] as const;
      await lines[1].release();
      await holder.release();
      expect((await stage.order()).holds).toEqual([lines[0].holdId]);
    });
  });

  describe('C15 A force release', () => {
    it('A force release sends nothing to a process whose subscription has ended, also if that was ended twice', async () => {
      const messages: StoreMessage[] = [];
      const other = await stage.process();
      const line = stage.deafProcess().line();
      const end = await stage.store.subscribe(line.request.process, (message) => void messages.push(message));
      const { fence } = await line.hold();
      for (const _ of [1, 2]) await end();
      messages.length = 0;
      await stage.store.forceRelease(key, fence);
      await other.heard();
      expect(messages).toEqual([]);
    });

    itQueues('A force release does nothing if the fence is not the one named, or if nobody holds the key', async () => {
      const process = await stage.process();
      expect(await stage.store.forceRelease(key, 1)).toBe(false);
      const holder = process.line();
      const { fence } = await holder.hold();
      await process.line().wait();
      const before = await stage.order();
      expect(await stage.store.forceRelease(key, fence - 1)).toBe(false);
      expect(await stage.store.forceRelease(key, fence + 1)).toBe(false);
      expect(await stage.order()).toEqual(before);
      expect(await process.heard()).toEqual([]);
    });

    itQueues(
      'A force release takes every hold of the owner, sends `lost` to their processes, and grants the next waiter',
      async () => {
        const [one, two, three] = [await stage.process(), await stage.process(), await stage.process()];
        const holds = [one.line('owner'), two.line('owner')] as const;
        const { fence } = await holds[0].hold();
        await holds[1].hold();
        const waiter = await three.line().wait();
        expect(await stage.store.forceRelease(key, fence)).toBe(true);
        expect(await one.heard()).toEqual([{ kind: 'lost', holdId: holds[0].holdId }]);
        expect(await two.heard()).toEqual([{ kind: 'lost', holdId: holds[1].holdId }]);
        expect((await three.granted(waiter)).fence).toBeGreaterThan(fence);
        expect((await stage.order()).holds).toEqual([waiter.holdId]);
      },
    );

    itQueues("A force release grants a waiter of the taken holder's process in the stream", async () => {
      const process = await stage.process();
      const holder = process.line();
      const { fence } = await holder.hold();
      const waiter = await process.line().wait();
      await stage.store.forceRelease(key, fence);
      expect(await process.granted(waiter)).toMatchObject({ isClaim: true });
      expect(await process.heard()).toContainEqual({ kind: 'lost', holdId: holder.holdId });
    });

    it('A force release does nothing if the lease has already expired', async () => {
      const process = await stage.process();
      const { fence } = await process.line().hold({ leaseMs: shortMs });
      await harness.elapse(shortMs);
      expect(await stage.store.forceRelease(key, fence)).toBe(false);
      expect(await process.heard()).toEqual([]);
    });

    it('A forced release makes the hold unknown: its renewal returns `lost`, its release `absent`', async () => {
      const line = stage.deafProcess().line();
      const { fence } = await line.hold();
      await stage.store.forceRelease(key, fence);
      expect(await line.renew(fence)).toEqual({ status: 'lost' });
      expect((await line.release()).status).toBe('absent');
    });
  });
}
