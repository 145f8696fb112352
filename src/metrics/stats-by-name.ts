import type { LockStats, Locks } from '../core/index.ts';
import type { LockNames } from './lock-names.ts';

/** Reads `locks.stats()` by the names of locks. Categories of one name are counted together. */
export function statsByName(locks: Locks, names: LockNames): ReadonlyMap<string, LockStats> {
  const { byCategory, otherCategories } = locks.stats();
  const byName = new Map<string, LockStats>();
  const add = (name: string, stats: LockStats): void => {
    const before = byName.get(name);
    byName.set(name, before === undefined ? stats : sum(before, stats));
  };
  for (const [category, stats] of byCategory) {
    add(names.of({ category: category === '' ? undefined : category }), stats);
  }
  if (otherCategories !== undefined) add('other', otherCategories);
  return byName;
}

function sum(a: LockStats, b: LockStats): LockStats {
  return {
    holds: a.holds + b.holds,
    waiters: a.waiters + b.waiters,
    oldestHoldMs: Math.max(a.oldestHoldMs, b.oldestHoldMs),
    oldestWaitMs: Math.max(a.oldestWaitMs, b.oldestWaitMs),
  };
}
