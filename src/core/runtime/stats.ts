import { type Instant, wholeMs } from '../base/clock.ts';
import type { Runtime } from './runtime.ts';

/** The holds and waiters of one `Locks` in this process, or those of one category. */
export interface LockStats {
  /** How many holds there are. Re-entry does not add one. */
  readonly holds: number;
  /** How many acquires wait in a queue. */
  readonly waiters: number;
  /** How long the oldest hold is held, in milliseconds; 0 without holds. */
  readonly oldestHoldMs: number;
  /** How long the oldest waiter waits, in milliseconds; 0 without waiters. */
  readonly oldestWaitMs: number;
}

/** The numbers of one `Locks`, in all and by category. */
export interface LocksStats extends LockStats {
  /** By category, `''` for locks without one; 100 categories at most. */
  readonly byCategory: ReadonlyMap<string, LockStats>;
  /** The locks of all other categories together, if there are more. */
  readonly otherCategories: LockStats | undefined;
}

/** At most this many categories are counted by name; the rest together. */
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
