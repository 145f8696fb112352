import type { DeadlockWait } from '../../../src/core/index.ts';
import type { InspectReply } from '../../../src/core/model/store.ts';

/** All locks at one time, by key. */
export type WaitState = Readonly<Record<string, InspectReply>>;

/**
 * Whether a ring stood in a state: each of its traces waits for its key, which the next one holds, and the waiter of
 * `victim` is its first and was queued last.
 */
export function stood(state: WaitState, cycle: readonly DeadlockWait[], victim: string): boolean {
  const [first] = cycle;
  const own = state[first?.key ?? '']?.waiters.find(({ holdId }) => holdId === victim);
  if (own === undefined) return false;
  return cycle.every(({ traceId, key }, index) => {
    const { waiters = [], holds = [] } = state[key] ?? {};
    const next = cycle[(index + 1) % cycle.length];
    const waits = waiters.some(
      ({ holdId, owner, sinceMs }) =>
        owner === traceId &&
        (index === 0 ? holdId === victim : sinceMs < own.sinceMs || (sinceMs === own.sinceMs && holdId < own.holdId)),
    );
    return waits && holds.some(({ owner }) => owner === next?.traceId);
  });
}

/** The owners that wait for each other in a state; none where there is no ring. */
export function ringOf(state: WaitState): readonly string[] {
  const waits = new Map<string, Set<string>>();
  for (const { holds, waiters } of Object.values(state)) {
    for (const waiter of waiters) {
      const others = waits.get(waiter.owner) ?? new Set();
      for (const { owner } of holds) if (owner !== waiter.owner) others.add(owner);
      waits.set(waiter.owner, others);
    }
  }
  // Who waits only for those that go on goes on as well.
  for (let before = -1; before !== waits.size; ) {
    before = waits.size;
    for (const [owner, others] of waits) if (![...others].some((other) => waits.has(other))) waits.delete(owner);
  }
  return [...waits.keys()].sort();
}
