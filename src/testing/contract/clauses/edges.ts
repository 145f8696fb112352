import { LockStoreError } from '../../../core/model/errors/failures.ts';
import type { EdgeStore, WaitEdge } from '../../../core/model/store.ts';
import { longMs, shortMs } from '../harness.ts';
import { type Contract, key, type Line } from '../stage.ts';

/** C26, C27: the edges of waits. */
export function describeEdges({ harness, stage, describe, it, expect }: Contract): void {
  const edges = (): EdgeStore => stage.store.edges as EdgeStore;
  const edgeOf = ({ request }: Line): WaitEdge => ({ request, traceId: 'trace', key: 'as: {it} was % written' });

  describe('C26 The edges of an owner', () => {
    it('The edges are exactly those that were set', async () => {
      const process = stage.deafProcess();
      const all = [process.line(), process.line(undefined, { id: 'other' })].map(edgeOf);
      expect(await edges().of('owner')).toEqual([]);
      for (const edge of all) await edges().set('owner', edge, longMs);
      expect(byHoldId(await edges().of('owner'))).toEqual(byHoldId(all));
      expect(await edges().of('another')).toEqual([]);
    });

    it('An edge that is set often is there once', async () => {
      const edge = edgeOf(stage.deafProcess().line());
      for (const _ of [1, 2, 3]) await edges().set('owner', edge, longMs);
      expect(await edges().of('owner')).toEqual([edge]);
    });

    it('Cleared edges are gone, also if they are cleared twice, and the others stay', async () => {
      const process = stage.deafProcess();
      const [one, two] = [edgeOf(process.line()), edgeOf(process.line())];
      for (const edge of [one, two]) await edges().set('owner', edge, longMs);
      await edges().set('another', one, longMs);
      for (const _ of [1, 2]) await edges().clear('owner', structuredClone(one));
      expect(await edges().of('owner')).toEqual([two]);
      await edges().clear('owner', two);
      expect(await edges().of('owner')).toEqual([]);
      expect(await edges().of('another')).toEqual([one]);
    });

    it('Each edge expires if it is not set again in time', async () => {
      const process = stage.deafProcess();
      const [short, long, again] = [edgeOf(process.line()), edgeOf(process.line()), edgeOf(process.line())];
      await edges().set('owner', long, longMs);
      await edges().set('owner', short, shortMs);
      await edges().set('owner', again, shortMs);
      await edges().set('owner', again, longMs);
      for (const [owner, ...ends] of [
        ['falling', longMs, shortMs],
        ['rising', shortMs, longMs],
      ] as const) {
        for (const ms of ends) await edges().set(owner, ms === longMs ? long : short, ms);
      }
      await harness.elapse(shortMs);
      expect(byHoldId(await edges().of('owner'))).toEqual(byHoldId([long, again]));
      for (const owner of ['falling', 'rising']) expect(await edges().of(owner)).toEqual([long]);
    });
  });

  describe('C27 `wait`', () => {
    it('`wait` reports no waiter and no holder for an unknown hold id and an unknown key', async () => {
      const { request } = stage.deafProcess().line();
      expect(await edges().wait(request)).toEqual({ sinceMs: undefined, holds: [] });
    });

    it('`wait` reports since when a hold id has waited, and the holders with their holds and fences', async () => {
      const process = stage.deafProcess();
      const holds = [process.line('holder'), process.line('holder')] as const;
      const { fence } = await holds[0].hold();
      await holds[1].hold();
      const before = await process.line().wait();
      const waiter = await process.line(undefined, { priority: -3 }).wait();
      const reply = await edges().wait(waiter.request);
      expect(reply.holds).toEqual(holds.map(({ holdId }) => ({ holdId, owner: 'holder', fence })));
      const { waiters } = await stage.inspect();
      expect(reply.sinceMs).toBe(waiters.find(({ holdId }) => holdId === waiter.holdId)?.sinceMs);
      expect((await edges().wait(before.request)).sinceMs).toBeLessThanOrEqual(reply.sinceMs!);
    });

    it('`wait` reports no waiter if it is another’s, was granted, or has left', async () => {
      const [one, two] = [await stage.process(), await stage.process()];
      const holder = await one.line().acquired();
      const [first, second] = [await two.line().wait(), await one.line().wait()];
      expect((await edges().wait({ ...first.request, holdId: 'other' })).sinceMs).toBeUndefined();
      await second.release();
      expect((await edges().wait(second.request)).sinceMs).toBeUndefined();
      await holder.release();
      const { sinceMs, holds } = await edges().wait(first.request);
      expect([sinceMs, holds.map(({ holdId }) => holdId)]).toEqual([undefined, [first.holdId]]);
    });

    it('`wait` reports no hold whose lease has expired, and changes nothing', async () => {
      const process = await stage.process();
      const { holder, begin } = await stage.shortTurn();
      const waiter = await process.line().wait();
      await begin();
      await harness.elapse(shortMs);
      for (const _ of [1, 2]) {
        expect(await edges().wait(waiter.request)).toEqual({ sinceMs: expect.any(Number), holds: [] });
      }
      expect(await process.heard()).toEqual([]);
      expect((await stage.order()).waiters).toEqual([waiter.holdId]);
      expect((await edges().wait(holder.request)).sinceMs).toBeUndefined();
    });

    it('`wait` reports no hold whose lease has expired, even if no call has touched its key since', async () => {
      const { request } = stage.deafProcess().line();
      await stage.deafProcess().line().hold({ leaseMs: shortMs });
      await harness.elapse(shortMs);
      expect(await edges().wait(request)).toEqual({ sinceMs: undefined, holds: [] });
    });

    it('`wait` reports on one key only', async () => {
      const process = stage.deafProcess();
      await process.line().hold();
      const waiter = await process.line().wait();
      expect(await edges().wait({ ...waiter.request, id: `${key}:1` })).toEqual({ sinceMs: undefined, holds: [] });
    });
  });

  for (const fault of harness.faults) {
    it(`C18 ${fault.name}: every call about edges rejects with a LockStoreError, \`${fault.outcome}\``, async () => {
      const { store, close } = await fault.create();
      const edge = edgeOf(stage.deafProcess().line());
      const broken = store.edges as EdgeStore;
      const results = await Promise.allSettled<unknown>([
        broken.set('owner', edge, longMs),
        broken.clear('owner', edge),
        broken.of('owner'),
        broken.wait(edge.request),
      ]);
      await close();
      for (const result of results) {
        const reason: unknown = result.status === 'rejected' ? result.reason : undefined;
        expect(reason).toBeInstanceOf(LockStoreError);
        expect(reason).toMatchObject({ outcome: fault.outcome });
      }
    });
  }
}

function byHoldId(edges: readonly WaitEdge[]): Record<string, WaitEdge> {
  return Object.fromEntries(edges.map((edge) => [edge.request.holdId, edge]));
}
