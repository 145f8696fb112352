import { longMs, shortMs } from '../harness.ts';
import type { Contract } from '../stage.ts';

/** C9, C10: release, cancel and renewal. */
export function describeEnding({ harness, stage, describe, it, itQueues, expect }: Contract): void {
  describe('C9 A release removes the hold or the queue entry of its hold id', () => {
    itQueues('The reply to a release shows whether it ended a hold or a wait', async () => {
      const process = stage.deafProcess();
      const holder = process.line();
      const { nowMs } = await holder.ask();
      const waiter = await process.line().wait();
      expect(await waiter.release()).toEqual({ status: 'cancelled', nowMs: expect.any(Number), claims: [] });
      const reply = await holder.release();
      expect(reply).toEqual({ status: 'released', nowMs: expect.any(Number), claims: [] });
      expect(reply.nowMs).toBeGreaterThanOrEqual(nowMs);
      expect(await process.line().release()).toEqual({ status: 'absent', nowMs: expect.any(Number), claims: [] });
      expect(await stage.order()).toEqual({ holds: [], waiters: [] });
    });

    for (const ms of [0, longMs]) {
      it(`A release returns \`expired\` if the lease had ended and nobody had taken the key (tombstone: ${ms})`, async () => {
        const line = await stage.deafProcess().line().acquired({ leaseMs: shortMs });
        await harness.elapse(shortMs);
        expect((await line.release(ms)).status).toBe('expired');
      });
    }

    it('A release returns `absent` if the lease had ended and another owner has taken the key; that owner keeps it', async () => {
      const process = stage.deafProcess();
      const line = await process.line().acquired({ leaseMs: shortMs });
      await harness.elapse(shortMs);
      const next = await process.line().acquired();
      expect((await line.release()).status).toBe('absent');
      expect((await stage.order()).holds).toEqual([next.holdId]);
    });

    itQueues('The release of a hold whose lease has expired still hands off', async () => {
      const { process, holder, begin } = await stage.shortTurn();
      const waiter = await process.line().wait();
      await begin();
      await harness.elapse(shortMs);
      expect(await holder.release()).toMatchObject({ status: 'expired', claims: [{ holdId: waiter.holdId }] });
    });

    itQueues('A release of an unknown hold id still frees an expired hold and hands off', async () => {
      const { begin } = await stage.shortTurn();
      const process = await stage.process();
      const waiter = await process.line().wait();
      await begin();
      await harness.elapse(shortMs);
      const { status, claims } = await process.line().release();
      expect(status).toBe('absent');
      expect(claims).toMatchObject([{ holdId: waiter.holdId }]);
    });

    it('With a tombstone, a repeated release returns `released` again, or `absent`', async () => {
      const line = await stage.deafProcess().line().acquired();
      expect((await line.copy.release(longMs)).status).toBe('released');
      for (const _ of [1, 2]) expect(['released', 'absent']).toContain((await line.copy.release(longMs)).status);
    });

    itQueues('With a tombstone, a repeated release of a waiter returns `cancelled` again, or `absent`', async () => {
      const process = stage.deafProcess();
      await process.line().hold();
      const waiter = await process.line().wait();
      expect((await waiter.release(longMs)).status).toBe('cancelled');
      for (const _ of [1, 2]) expect(['cancelled', 'absent']).toContain((await waiter.release(longMs)).status);
    });

    it('With a tombstone, a repeated release of what has not arrived returns `absent` again', async () => {
      const line = stage.deafProcess().line();
      for (const _ of [1, 2]) expect((await line.release(longMs)).status).toBe('absent');
    });

    for (const queue of [true, false]) {
      it(`An acquire that arrives after its cancel returns \`cancelled\` (queue: ${queue})`, async () => {
        const line = stage.deafProcess().line();
        await line.release(longMs);
        expect(await line.ask({ queue })).toMatchObject({ status: 'cancelled', nowMs: expect.any(Number), claims: [] });
        expect(await stage.order()).toEqual({ holds: [], waiters: [] });
      });
    }

    it('An acquire that arrives after its release returns `cancelled` at re-entry, too', async () => {
      const process = stage.deafProcess();
      const line = process.line('owner');
      await process.line('owner').hold();
      await line.release(longMs);
      expect((await line.ask()).status).toBe('cancelled');
      expect((await stage.inspect()).holds).toHaveLength(1);
    });

    it('Without a tombstone, a hold id may be used again', async () => {
      const line = await stage.deafProcess().line().acquired();
      await line.release(0);
      expect((await line.ask()).status).toBe('granted');
    });

    it('A tombstone is for its hold id alone', async () => {
      const process = stage.deafProcess();
      const line = await process.line('owner').acquired();
      await line.release(longMs);
      expect((await process.line('owner').ask()).status).toBe('granted');
    });

    it('A tombstone lasts as long as was asked for, even if a shorter one was set in between', async () => {
      const process = stage.deafProcess();
      const line = process.line();
      await line.release(longMs);
      await process.line().release(1);
      await harness.elapse(shortMs);
      await process.line().release(1);
      await harness.elapse(shortMs);
      await process.line().ask();
      expect((await line.ask()).status).toBe('cancelled');
    });

    it('A tombstone is forgotten in the end', async () => {
      const line = stage.deafProcess().line();
      await line.release(shortMs);
      await harness.elapse(3 * shortMs);
      expect((await line.ask()).status).toBe('granted');
    });

    for (const status of ['released', 'absent']) {
      it(`A tombstone is forgotten in the end, and one that lasts longer is kept: ${status}`, async () => {
        const [line, other] = [stage.deafProcess().line(), stage.deafProcess().line()];
        for (const [each, tombstoneMs] of [[line, shortMs] as const, [other, longMs] as const]) {
          if (status === 'released') await each.hold();
          expect((await each.release(tombstoneMs)).status).toBe(status);
        }
        await harness.elapse(3 * shortMs);
        expect((await line.ask()).status).toBe('granted');
      });
    }
  });

  describe('C10 A renewal', () => {
    it('A renewal moves the end of the lease to `leaseMs` from now', async () => {
      const line = stage.deafProcess().line();
      const { fence } = await line.hold({ leaseMs: 10_000 });
      const reply = await line.renew(fence, 20_000);
      expect(reply).toMatchObject({ status: 'renewed', nowMs: expect.any(Number) });
      if (reply.status === 'renewed') expect(reply.endMs).toBe(reply.nowMs + 20_000);
      expect((await stage.inspect()).holds).toMatchObject([{ endMs: (reply as { endMs: number }).endMs }]);
    });

    it('A renewal never moves the end of the lease nearer', async () => {
      const line = stage.deafProcess().line();
      const { fence, endMs } = await line.hold({ leaseMs: 20_000 });
      expect(await line.renew(fence, 10)).toMatchObject({ status: 'renewed', endMs });
      expect((await stage.inspect()).holds).toMatchObject([{ endMs }]);
    });

    it('A renewal keeps the hold beyond its first lease', async () => {
      const process = stage.deafProcess();
      const line = process.line();
      const { fence } = await line.hold({ leaseMs: longMs });
      await line.renew(fence, 2 * longMs);
      await line.renew(fence, 1);
      await harness.elapse(shortMs);
      expect((await process.line().try()).status).toBe('refused');
    });

    itQueues('A renewal turns a claim into a lease, once and for all', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const waiter = await process.line(undefined, { claimMs: 20_000 }).wait();
      const { fence } = (await holder.release()).claims[0]!;
      const reply = await waiter.renew(fence, longMs);
      expect(reply).toMatchObject({ status: 'renewed' });
      expect((await stage.inspect()).holds).toMatchObject([
        { isClaim: false, endMs: (reply as { endMs: number }).endMs },
      ]);
      expect(await waiter.hold()).toMatchObject({ isClaim: false, fence });
    });

    it('A renewal moves one hold: the owner’s other holds keep their ends', async () => {
      const process = stage.deafProcess();
      const [outer, inner] = [process.line('owner'), process.line('owner')];
      const { fence, endMs } = await outer.hold();
      await inner.hold();
      await inner.renew(fence, 2 * longMs);
      expect((await stage.inspect()).holds[0]).toMatchObject({ holdId: outer.holdId, endMs });
    });

    it('A renewal with another fence returns `lost`, and changes nothing', async () => {
      const line = stage.deafProcess().line();
      const { fence, endMs } = await line.hold();
      for (const other of [fence - 1, fence + 1]) {
        expect(await line.renew(other, 2 * longMs)).toEqual({ status: 'lost' });
      }
      expect((await stage.inspect()).holds).toMatchObject([{ endMs, fence }]);
    });

    itQueues(
      'A renewal of a hold id that is unknown, only queued, or released is `lost`, and makes nothing',
      async () => {
        const process = stage.deafProcess();
        expect(await process.line().renew(1)).toEqual({ status: 'lost' });
        const holder = process.line();
        const { fence } = await holder.hold();
        const waiter = await process.line().wait();
        expect(await waiter.renew(fence)).toEqual({ status: 'lost' });
        await waiter.release();
        await holder.release();
        expect(await holder.renew(fence)).toEqual({ status: 'lost' });
        expect(await stage.order()).toEqual({ holds: [], waiters: [] });
      },
    );

    it('A renewal after the lease returns `lost`, even if nobody has taken the key, and does not re-create the hold', async () => {
      const process = stage.deafProcess();
      const line = process.line();
      const { fence } = await line.hold({ leaseMs: shortMs });
      await harness.elapse(shortMs);
      expect(await line.renew(fence)).toEqual({ status: 'lost' });
      expect((await stage.inspect()).holds).toEqual([]);
      expect((await process.line().try()).status).toBe('granted');
    });

    itQueues('A renewal of a claim that lapsed is `lost`', async () => {
      const process = await stage.process();
      const holder = await process.line().acquired();
      const waiter = await process.line(undefined, { claimMs: shortMs }).wait();
      const { fence } = (await holder.release()).claims[0]!;
      await harness.elapse(shortMs);
      expect(await waiter.renew(fence)).toEqual({ status: 'lost' });
    });
  });
}
