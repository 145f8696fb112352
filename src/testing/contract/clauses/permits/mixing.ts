import type { Contract } from '../../stage.ts';

/** C19: holds of different limits on one key. */
export function describeMixing({ stage, describe, it, expect }: Contract): void {
  describe('C19 The least limit of all holds counts', () => {
    it('A key that is asked for with different numbers of permits has as many owners as the least of them', async () => {
      const process = stage.deafProcess();
      const three = [process.permit(3), process.permit(3)] as const;
      for (const line of three) await line.hold();
      const two = process.permit(2);
      expect(await two.status({ queue: false })).toBe('refused');
      await three[0].release();
      expect(await two.status({ queue: false })).toBe('granted');
      expect(await process.permit(3).status({ queue: false })).toBe('refused');
      await two.release();
      expect(await process.permit(3).status({ queue: false })).toBe('granted');
    });

    it('A writer has the key alone, and readers count as owners alongside permits', async () => {
      const process = stage.deafProcess();
      const writer = await process.line().acquired();
      for (const line of [process.permit(2), process.reader()])
        expect(await line.status({ queue: false })).toBe('refused');
      await writer.release();
      await process.permit(2).hold();
      expect(await process.line().status({ queue: false })).toBe('refused');
      expect(await process.reader().status({ queue: false })).toBe('granted');
      expect(await process.reader().status({ queue: false })).toBe('refused');
    });

    it('Each hold and each waiter is reported with its mode', async () => {
      const process = stage.deafProcess();
      await process.permit(2).hold();
      await process.reader().hold();
      if (stage.store.capabilities.queue) await process.line().wait();
      const { holds, waiters } = await stage.inspect();
      expect(holds.map(({ mode }) => mode).sort()).toEqual(['permit', 'read']);
      if (stage.store.capabilities.queue) expect(waiters.map(({ mode }) => mode)).toEqual(['write']);
    });
  });
}
