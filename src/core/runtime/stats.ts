import { type Instant, wholeMs } from '../base/clock.ts';
import type { LockStats, LocksStats } from '../model/types.ts';
import type { Runtime } from './runtime.ts';

/** So many categories are counted by name; the rest together. */
const maxCategories = 100;

/** Counts the holds and waiters of one `Locks` in this process, now. No store call. */
export function statsOf({ grants, acquires, clock }: Runtime): LocksStats {
  const now = clock.now();
  const all = new Count();
  const byCategory = new Map<string, Count>();
  const rest = new Count();
  const countOf = (category: string): Count => {
    const known = byCategory.get(category);
    if (known !== undefined) return known;
    if (byCategory.size >= maxCategories) return rest;
    const count = new Count();
    byCategory.set(category, count);
    return count;
  };
  for (const { category = '', grantedAt } of grants.all) {
    all.addHold(now, grantedAt);
    countOf(category).addHold(now, grantedAt);
  }
  for (const { category = '', startedAt } of acquires.waiting) {
    all.addWaiter(now, startedAt);
    countOf(category).addWaiter(now, startedAt);
  }
  const categories = [...byCategory].map(([category, count]) => [category, count.stats] as const);
  const isComplete = rest.stats.holds + rest.stats.waiters === 0;
  return { ...all.stats, byCategory: new Map(categories), otherCategories: isComplete ? undefined : rest.stats };
}

class Count {
  readonly stats: { -readonly [K in keyof LockStats]: LockStats[K] } = {
    holds: 0,
    waiters: 0,
    oldestHoldMs: 0,
    oldestWaitMs: 0,
  };

  addHold(now: Instant, since: Instant): void {
    this.stats.holds += 1;
    this.stats.oldestHoldMs = Math.max(this.stats.oldestHoldMs, wholeMs(now, since));
  }

  addWaiter(now: Instant, since: Instant): void {
    this.stats.waiters += 1;
    this.stats.oldestWaitMs = Math.max(this.stats.oldestWaitMs, wholeMs(now, since));
  }
}
