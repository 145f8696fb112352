import { longMs } from '../../harness.ts';
import type { Contract } from '../../stage.ts';

/** C21: the fence of a key with permits. */
export function describePermitFences({ stage, describe, it, expect }: Contract): void {
  describe('C21 The fence of a key with permits', () => {
    it('rises with each owner that is granted, and not at re-entry', async () => {
      const process = stage.deafProcess();
      const first = await process.permit(3, 'owner').hold();
      const second = await process.permit(3).hold();
      expect(second.fence).toBeGreaterThan(first.fence);
      const again = await process.permit(3, 'owner').hold();
      expect(again.fence).toBe(second.fence);
      const third = await process.permit(3).hold();
      expect(third.fence).toBeGreaterThan(second.fence);
    });

    it('lets each hold be renewed with the fence that it got, and not with a later one', async () => {
      const process = stage.deafProcess();
      const lines = [process.permit(3), process.permit(3), process.permit(3)] as const;
      const fences = [(await lines[0].hold()).fence, (await lines[1].hold()).fence, (await lines[2].hold()).fence];
      for (const [n, line] of lines.entries()) {
        expect(await line.renew(fences[n] as number)).toMatchObject({ status: 'renewed' });
        expect(await line.renew((fences[2] as number) + 1)).toEqual({ status: 'lost' });
      }
      await lines[2].release();
      expect(await lines[1].renew(fences[1] as number)).toMatchObject({ status: 'renewed' });
    });

    it('is greater after all have ended', async () => {
      const process = stage.deafProcess();
      const lines = [process.permit(2), process.permit(2)] as const;
      await lines[0].hold();
      const { fence } = await lines[1].hold();
      for (const line of lines) await line.release(longMs);
      expect((await process.permit(2).hold()).fence).toBeGreaterThan(fence);
    });

    it('A reader that takes a permit gets a new fence, although others have permits of the same number', async () => {
      const process = stage.deafProcess();
      await process.reader('owner').hold();
      await process.permit(3).hold();
      const ended = process.permit(3);
      const { fence } = await ended.hold();
      await ended.release();
      const own = await process.permit(3, 'owner').hold();
      expect(own.fence).toBeGreaterThan(fence);
      expect((await process.permit(3, 'owner').hold()).fence).toBe(own.fence);
    });
  });
}
