import type { StoreMessage } from '../../../core/model/store.ts';
import { longMs, shortMs } from '../harness.ts';
import { type Contract, key, type Line } from '../stage.ts';

/** Beyond the clock of any server that runs the tests. */
const farMs = 60_000;

/** C24, C25: what a quorum needs of its nodes. */
export function describeNode({ harness, stage, describe, it, expect }: Contract): void {
  const far = async () => ((await stage.inspect()).nowMs + farMs) * 1000;

  describe('C24 With `minFence`', () => {
    it('The store declares that it supports `minFence`', async () => {
      expect(stage.store.capabilities.minFence).toBe(true);
    });

    it('A new fence is at least `minFence`, and every call reports the same', async () => {
      const minFence = await far();
      const line = stage.deafProcess().line();
      const grant = await line.hold({ minFence });
      expect(grant.fence).toBe(minFence);
      expect((await stage.inspect()).holds).toEqual([
        { ...grant, owner: line.request.owner, process: line.request.process, mode: 'write' },
      ]);
      expect(await line.hold()).toEqual(grant);
      expect(await line.renew(minFence)).toMatchObject({ status: 'renewed' });
    });

    it('A `minFence` below what the store would give changes nothing', async () => {
      const process = stage.deafProcess();
      const first = process.line();
      const { fence } = await first.hold({ minFence: 1 });
      expect(fence).toBeGreaterThan(1e15);
      await first.release();
      expect((await process.line().hold({ minFence: fence })).fence).toBeGreaterThan(fence);
    });

    for (const end of ['released', 'over']) {
      it(`The next owner has a greater fence if the hold is ${end}`, async () => {
        const minFence = await far();
        const process = stage.deafProcess();
        const line = await process.line().acquired({ minFence, leaseMs: shortMs });
        if (end === 'released') await line.release();
        else await harness.elapse(shortMs);
        expect((await process.line().hold()).fence).toBeGreaterThan(minFence);
      });
    }

    it('A repeat raises the fence of a hold that is alone, and not its lease; the old fence is lost', async () => {
      const line = stage.deafProcess().line();
      const { fence, endMs } = await line.hold();
      const minFence = await far();
      expect(await line.hold({ minFence, leaseMs: 2 * longMs })).toMatchObject({ fence: minFence, endMs });
      expect(await line.hold({ minFence: minFence - 1 })).toMatchObject({ fence: minFence });
      expect(await line.renew(fence)).toEqual({ status: 'lost' });
      expect(await line.renew(minFence)).toMatchObject({ status: 'renewed' });
      await line.release();
      expect((await stage.deafProcess().line().hold()).fence).toBeGreaterThan(minFence);
    });

    it('A repeat raises the fence to exactly `minFence`, whatever the clock shows', async () => {
      const line = stage.deafProcess().line();
      const { fence } = await line.hold();
      await harness.elapse(2);
      expect(await line.hold({ minFence: fence + 1 })).toMatchObject({ fence: fence + 1 });
    });

    it('Re-entry has the owner’s fence, also when it is repeated', async () => {
      const process = stage.deafProcess();
      const [outer, inner] = [process.line('owner'), process.line('owner')];
      const { fence } = await outer.hold();
      const minFence = await far();
      expect((await inner.hold({ minFence })).fence).toBe(fence);
      expect((await inner.hold({ minFence })).fence).toBe(fence);
      expect((await outer.hold({ minFence })).fence).toBe(fence);
    });

    it('A reader that becomes the writer gets at least `minFence`, too, and the next owner a greater one', async () => {
      const process = stage.deafProcess();
      const [reader, writer] = [process.line('owner', { mode: 'read' }), process.line('owner')];
      const { fence } = await reader.hold();
      const minFence = await far();
      expect((await writer.hold({ minFence })).fence).toBe(minFence);
      // What it got as a reader still counts.
      expect(await reader.renew(fence)).toMatchObject({ status: 'renewed' });
      expect(await writer.renew(minFence)).toMatchObject({ status: 'renewed' });
      for (const line of [writer, reader]) await line.release();
      expect((await process.line().hold()).fence).toBeGreaterThan(minFence);
    });

    it('A refused acquire leaves the fence alone', async () => {
      const process = stage.deafProcess();
      const { fence } = await process.line().hold();
      expect((await process.line().ask({ queue: false, minFence: await far() })).status).toBe('refused');
      expect((await stage.inspect()).holds).toMatchObject([{ fence }]);
    });
  });

  describe('C25 A release that is to be announced', () => {
    const announced = (line: Line) => stage.store.release(line.request, { tombstoneMs: longMs, announce: true });
    const freed = (messages: readonly StoreMessage[]) => messages.filter(({ kind }) => kind === 'freed');

    it('An announced release that leaves the key free sends a message to every process that subscribed for it, and to no other', async () => {
      const [one, two] = [await stage.process({ freed: true }), await stage.process({ freed: true })];
      const other = await stage.process();
      const lines = [one.line('owner'), one.line('owner')] as const;
      for (const line of lines) await line.hold();
      await announced(lines[0]);
      expect(await two.heard()).toEqual([]);
      await announced(lines[1]);
      for (const process of [one, two]) expect(freed(await process.heard())).toEqual([{ kind: 'freed', id: key }]);
      expect(await other.heard()).toEqual([]);
    });

    it('An announced release also sends a message for a hold id whose acquire got a reply, the first and later ones', async () => {
      const process = await stage.process({ freed: true });
      for (let turn = 0; turn < 3; turn++) {
        const line = await process.line().acquired();
        await announced(line);
      }
      expect(freed(await process.heard())).toHaveLength(3);
    });

    it('An announced release sends no message if the next waiter is granted', async () => {
      const process = await stage.process({ freed: true });
      const line = await process.line().acquired();
      await process.line().wait();
      await announced(line);
      expect(freed(await process.heard())).toEqual([]);
    });

    it('A release sends no message if nothing was held, or if it was not announced', async () => {
      const process = await stage.process({ freed: true });
      await announced(process.line());
      const line = await process.line().acquired();
      await line.release();
      expect(await process.heard()).toEqual([]);
    });

    it('An announced release sends no message to a process that has unsubscribed', async () => {
      const [gone, process] = [await stage.process({ freed: true }), await stage.process({ freed: true })];
      await gone.leave();
      const line = await process.line().acquired();
      await announced(line);
      expect(freed(await process.heard())).toHaveLength(1);
      await process.leave();
      expect(gone.messages).toEqual([]);
    });
  });
}
