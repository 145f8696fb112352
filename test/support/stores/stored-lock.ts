import type { HoldRequest, InspectReply, LockStore, StoreMessage } from '../../../src/core/model/store.ts';
import type { Line, StoreStage } from '../../../src/testing/contract/stage.ts';

/**
 * Expects that a store reads a lock that another version has stored, and goes on with it: its holds are renewed and released,
 * and those of the waiters that get the key, in their order, and the fence of the next hold is higher than theirs.
 */
export async function expectGoesOn(store: LockStore, id: string, stored: InspectReply): Promise<void> {
  expect(await store.inspect(id)).toEqual(stored);
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
  expect(order).toEqual([...stored.holds, ...stored.waiters].map(({ holdId }) => holdId));
  expect(reply.status === 'granted' && reply.grant.fence).toBeGreaterThan(fence);
}

/** Expects that messages are read as they were, and a kind that is not known yet is ignored. */
export function expectKnownMessages(readMessage: (text: string) => StoreMessage | undefined): void {
  const grant = { holdId: 'hold-1', fence: 1700000000000000, endMs: 1700000003000, isClaim: true };
  expect(readMessage('granted hold-1 1700000000000000 1700000003000')).toEqual({ kind: 'granted', grant });
  expect(readMessage('lost hold-1')).toEqual({ kind: 'lost', holdId: 'hold-1' });
  expect(readMessage('freed order:42')).toEqual({ kind: 'freed', id: 'order:42' });
  expect(readMessage('moved hold-1 5')).toBeUndefined();
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
