import { shortMs } from '../harness.ts';
import type { Contract } from '../stage.ts';

/** C23: naming the locks. */
export function describeListing({ has, harness, stage, describe, it, expect }: Contract): void {
  describe('C23 `list`', () => {
    if (!has('list')) {
      it('`list` is absent', async () => {
        expect(stage.store.list).toBeUndefined();
      });
      return;
    }

    /** All pages. */
    async function all(idPrefix: string, limit: number): Promise<{ ids: string[]; pages: number }> {
      const ids: string[] = [];
      let [cursor, pages]: [string | undefined, number] = [undefined, 0];
      do {
        const page = await stage.store.list!({ idPrefix, limit, cursor });
        ids.push(...page.locks.map(({ id }) => id));
        cursor = page.cursor;
        pages += 1;
      } while (cursor !== undefined);
      return { ids, pages };
    }

    it('`list` names every lock that begins with the prefix, once all pages are read, and no other', async () => {
      const process = stage.deafProcess();
      const names = Array.from({ length: 60 }, (_, i) => `order:${i}`);
      for (const id of [...names, 'stock:1', 'orders', 'a', 'order', 'ORDER:1'])
        await process.line(undefined, { id }).hold();
      const { ids, pages } = await all('order:', 10);
      expect([...new Set(ids)].sort()).toEqual([...names].sort());
      expect(pages).toBeGreaterThan(2);
      expect([...new Set((await all('', 1000)).ids)]).toHaveLength(65);
      expect((await all('nothing', 10)).ids).toEqual([]);
    });

    it('`list` takes every character of a name literally', async () => {
      const names = ['a*c', 'a?c', 'a[bc]d', 'a\\c', 'a^c', 'a-c', 'abc', 'a%007bc', 'ä'];
      for (const id of names) await stage.deafProcess().line(undefined, { id }).hold();
      for (const id of names) expect([id, ...(await all(id, 1000)).ids]).toEqual([id, id]);
    });

    it('`list` reports of each lock what `inspect` reports', async () => {
      const process = stage.deafProcess();
      const holder = await process.line().acquired();
      await process.line(undefined, { priority: 3 }).wait();
      const { locks } = await stage.store.list!({ idPrefix: '', limit: 100 });
      const { nowMs: _, ...reply } = await stage.inspect();
      expect(locks).toEqual([{ id: holder.request.id, nowMs: expect.any(Number), ...reply }]);
    });

    it('`list` does not name a lock that was released, or whose lease has expired', async () => {
      const process = stage.deafProcess();
      const released = await process.line(undefined, { id: 'released' }).acquired();
      await released.release();
      await process.line(undefined, { id: 'over' }).hold({ leaseMs: shortMs });
      await harness.elapse(shortMs);
      expect((await all('', 100)).ids).toEqual([]);
    });
  });
}
