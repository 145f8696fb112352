import { shortMs } from '../../harness.ts';
import { type Contract, holdIds } from '../../stage.ts';

/** C30: how many owners hold a key. */
export function describePermits({ has, harness, stage, describe, it, itQueues, expect }: Contract): void {
  describe('C30 So many owners hold a key as it has permits', () => {
    it('Owners of any process are granted until no permit is left, and the next one is refused', async () => {
      const lines = [1, 2, 3].map(() => stage.deafProcess().permit(3));
      for (const line of lines) await line.hold();
      expect(await stage.deafProcess().permit(3).status({ queue: false })).toBe('refused');
      expect((await stage.order()).holds.sort()).toEqual(holdIds(lines).sort());
    });

    it('One permit is for one owner', async () => {
      const [one, other] = [stage.deafProcess().permit(1), stage.deafProcess().permit(1)];
      await one.hold();
      expect(await other.status({ queue: false })).toBe('refused');
      await one.release();
      expect(await other.status({ queue: false })).toBe('granted');
    });

    it('An owner that holds is granted at once, and takes no further permit', async () => {
      const process = stage.deafProcess();
      const own = [1, 2, 3].map(() => process.permit(2, 'owner'));
      for (const line of own) await line.hold();
      const other = process.permit(2);
      expect(await other.ask({ queue: false })).toMatchObject({ grant: { otherHolds: 0 } });
      const fourth = process.permit(2, 'owner');
      expect(await fourth.ask({ queue: false })).toMatchObject({ grant: { otherHolds: 3 } });
      for (const line of own) {
        expect(await process.permit(2).status({ queue: false })).toBe('refused');
        await line.release();
      }
      expect(await process.permit(2).status({ queue: false })).toBe('refused');
      await fourth.release();
      expect(await process.permit(2).status({ queue: false })).toBe('granted');
    });

    it('A repeated acquire takes no further permit', async () => {
      const process = stage.deafProcess();
      const line = process.permit(2);
      const { fence } = await line.hold();
      expect(await line.ask()).toMatchObject({ grant: { fence, otherHolds: 0 } });
      expect(await process.permit(2).status({ queue: false })).toBe('granted');
    });

    it('A permit is free when its lease has expired, and only then', async () => {
      const process = stage.deafProcess();
      await process.permit(2).hold({ leaseMs: shortMs });
      const long = process.permit(2);
      const { fence } = await long.hold();
      await harness.elapse(shortMs);
      const next = await process.permit(2).acquired();
      expect(await long.renew(fence)).toMatchObject({ status: 'renewed' });
      expect(await process.permit(2).status({ queue: false })).toBe('refused');
      expect((await stage.order()).holds.sort()).toEqual(holdIds([long, next]).sort());
    });

    it('A permit passes to another owner, which holds it instead of the first', async () => {
      if (!has('transfer')) return;
      const process = stage.deafProcess();
      const [from, beside, to] = [process.permit(2), process.permit(2), process.permit(2)];
      await from.hold();
      const { fence } = await beside.hold();
      const reply = await from.transfer(to);
      expect(reply).toMatchObject({ status: 'granted' });
      expect(reply.status === 'granted' && reply.grant.fence).toBeGreaterThan(fence);
      expect(await process.permit(2).status({ queue: false })).toBe('refused');
      expect((await stage.order()).holds.sort()).toEqual(holdIds([beside, to]).sort());
    });

    itQueues('A permit that passes to an owner that has one leaves one for the first waiter, at once', async () => {
      if (!has('transfer')) return;
      const process = await stage.process();
      const [from, beside, to] = [process.permit(2), process.permit(2, 'owner'), process.permit(2, 'owner')];
      await from.hold();
      await beside.hold();
      const waiters = [await process.permit(2).wait(), await process.permit(2).wait()] as const;
      expect((await from.transfer(to)).status).toBe('granted');
      expect((await process.granted(waiters[0])).holdId).toBe(waiters[0].holdId);
      expect((await stage.order()).waiters).toEqual([waiters[1].holdId]);
    });

    it('A permit does not pass to another owner if its owner has other holds: there might be too few permits', async () => {
      if (!has('transfer')) return;
      const process = stage.deafProcess();
      const own = [process.permit(1, 'owner'), process.permit(1, 'owner')] as const;
      for (const line of own) await line.hold();
      expect((await own[0].transfer(process.permit(1))).status).toBe('shared');
      expect((await stage.order()).holds.sort()).toEqual(holdIds(own).sort());
    });
  });
}
