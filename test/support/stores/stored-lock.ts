import type { HoldRequest, InspectReply, LockStore } from '../../../src/core/model/store.ts';
import type { Line, StoreStage } from '../../../src/testing/contract/stage.ts';

/**
 * Goes on with a lock that another version has stored: renews and releases its holds, and those of the waiters that get the
 * key. Returns the hold ids in the order in which they had it, and whether the fence of the next hold is higher than theirs.
 */
export async function goOnWith(
  store: LockStore,
  id: string,
  stored: InspectReply,
): Promise<{ readonly order: readonly string[]; readonly isFenceHigher: boolean }> {
  const names = new Set([...stored.holds, ...stored.waiters].map(({ process }) => process));
  const ends = await Promise.all([...names].map((name) => store.subscribe(name, () => {})));
  const order: string[] = [];
  let fence = 0;
  for (let { holds } = stored; holds.length > 0; { holds } = await store.inspect(id)) {
    for (const { holdId, owner, process, mode, fence: granted } of holds) {
      const request: HoldRequest = { id, holdId, owner, process, claimMs: 3_000, mode, priority: 0 };
      const renewed = await store.renew(request, { fence: granted, leaseMs: 5_000 });
      const released = await store.release(request, { tombstoneMs: 0 });
      if (renewed.status !== 'renewed' || released.status !== 'released') throw new Error(`${holdId} is not held`);
      order.push(holdId);
      fence = Math.max(fence, granted);
    }
  }
  const next = { id, holdId: 'next', owner: 'next', process: 'next', claimMs: 1, mode: 'write', priority: 0 } as const;
  const reply = await store.acquire(next, { leaseMs: 10, queue: false, maxWaiters: 1, livenessMs: 1 });
  for (const end of ends) await end();
  return { order, isFenceHigher: reply.status === 'granted' && reply.grant.fence > fence };
}

/**
 * Expects each call about a lock to be refused, because its record is of a later format. `others` are calls of this store only. Returns
 * the hold or waiter that made them.
 */
export async function expectLaterFormat(
  stage: StoreStage,
  id: string,
  ...others: readonly ((request: HoldRequest) => unknown)[]
): Promise<Line> {
  const line = stage.deafProcess().line(undefined, { id });
  const calls = [
    () => line.ask(),
    () => line.try(),
    () => line.renew(1),
    () => line.release(),
    () => line.transfer(stage.deafProcess().line(undefined, { id })),
    () => stage.store.inspect(id),
    () => stage.store.forceRelease(id, 1),
    ...others,
  ];
  for (const call of calls) {
    await expect((async () => call(line.request))()).rejects.toMatchObject({
      code: 'ERR_LOCK_STORE',
      outcome: 'not-applied',
      message: expect.stringContaining('Restart this process with that version'),
    });
  }
  return line;
}
