import { ancestorsOf, isAncestor } from '../model/owner.ts';
import type { HoldRequest } from '../model/store.ts';
import { type Placed, SortedList } from './sorted-list.ts';

/** A hold in memory. */
export interface MemoryHold {
  readonly request: HoldRequest;
  /** The fence that it was granted with. The lock's fence may have risen since: it may be renewed with either. */
  fence: number;
  endMs: number;
  isClaim: boolean;
}

/** How many owners may hold a key together with a hold, its own included: 1 for a writer, any number for readers. */
export function limitOf({ mode, permits }: HoldRequest): number {
  if (mode === 'write') return 1;
  return permits ?? Number.POSITIVE_INFINITY;
}

/** The holds of one lock. There may be thousands of readers: only `all` and `first` go through them. */
export class Holds {
  /** In the order in which they were granted. */
  readonly #holds = new Map<string, MemoryHold>();
  /** From the second hold on: most locks have one. */
  #index: HoldIndex | undefined;

  get size(): number {
    return this.#holds.size;
  }

  /** The one that was granted first. All have one fence. */
  get oldest(): MemoryHold | undefined {
    return this.#holds.values().next().value;
  }

  /** In the order in which they were granted. */
  get all(): MemoryHold[] {
    return [...this.#holds.values()];
  }

  /** The least limit of the holds. */
  get limit(): number {
    if (this.#index !== undefined) return this.#index.limit;
    return this.oldest === undefined ? Number.POSITIVE_INFINITY : limitOf(this.oldest.request);
  }

  /** Those whose leases last, the first `count` at most, in the order in which they were granted. */
  first(count: number, nowMs: number): MemoryHold[] {
    const holds: MemoryHold[] = [];
    for (const hold of this.#holds.values()) {
      if (holds.length === count) break;
      if (hold.endMs > nowMs) holds.push(hold);
    }
    return holds;
  }

  get(holdId: string): MemoryHold | undefined {
    return this.#holds.get(holdId);
  }

  /** How many an owner has. */
  countOf(owner: string): number {
    if (this.#index !== undefined) return this.#index.countOf(owner);
    return this.oldest?.request.owner === owner ? 1 : 0;
  }

  /** How many other holds the owner of a hold has, of which a reader counts no readers. */
  equalsOf({ owner, mode }: HoldRequest): number {
    if (mode !== 'read') return this.countOf(owner) - 1;
    if (this.limit === Number.POSITIVE_INFINITY) return 0;
    return this.all.filter(({ request }) => request.owner === owner && request.mode !== 'read').length;
  }

  /** How many an owner and its ancestors have. */
  familyOf(owner: string): number {
    if (this.size === 0) return 0;
    return ancestorsOf(owner).reduce((count, ancestor) => count + this.countOf(ancestor), 0);
  }

  /** The least limit of the holds that an owner and its ancestors have. */
  familyLimitOf(owner: string): number {
    const family = this.all.filter(({ request }) => isAncestor(request.owner, owner));
    return Math.min(...family.map(({ request }) => limitOf(request)));
  }

  /** How many branches the path of the deepest holder has that is an owner or its ancestor; 0 if there is none. */
  depthOver(owner: string): number {
    return this.size === 0 ? 0 : ancestorsOf(owner).findLastIndex((ancestor) => this.countOf(ancestor) > 0) + 1;
  }

  /**
   * Whether the holds admit one more. Holds of ancestors never exclude it. Of the others, each branch counts as one owner together
   * with its ancestors: there may be as many owners as the least limit.
   */
  admits(request: HoldRequest): boolean {
    const { owner } = request;
    const outside = this.size - this.familyOf(owner);
    const limit = Math.min(this.limit, limitOf(request));
    if (outside === 0 || outside < limit) return true;
    return limit > 1 && this.#branchesBeside(owner) < limit;
  }

  /** What remains of the lease that ends last, in milliseconds. */
  remainingMs(nowMs: number): number {
    const last = this.#index === undefined ? this.oldest : this.#index.ends.last;
    return last === undefined ? 0 : Math.max(0, last.endMs - nowMs);
  }

  get hasClaims(): boolean {
    return this.#index === undefined ? this.oldest?.isClaim === true : this.#index.claims.size > 0;
  }

  /** The open claims of a process, in the order in which they were granted. */
  claimsOf(process: string): Iterable<MemoryHold> {
    if (this.#index !== undefined) return this.#index.claims.get(process) ?? [];
    const { oldest } = this;
    return oldest?.isClaim && oldest.request.process === process ? [oldest] : [];
  }

  add(hold: MemoryHold): void {
    this.#holds.set(hold.request.holdId, hold);
    if (this.#index !== undefined) this.#index.add(hold);
    else if (this.size > 1) this.#index = new HoldIndex(this.#holds.values());
  }

  /** Returns whether it was there. */
  delete(holdId: string): boolean {
    const hold = this.#holds.get(holdId);
    if (hold === undefined) return false;
    this.#holds.delete(holdId);
    this.#index?.delete(hold);
    if (this.size === 0) this.#index = undefined;
    return true;
  }

  /** Moves the end of a lease, and makes a claim a lease. */
  renew(hold: MemoryHold, endMs: number): void {
    this.#index?.delete(hold);
    hold.isClaim = false;
    hold.endMs = endMs;
    this.#index?.add(hold);
  }

  /** Removes and returns those whose leases have expired. */
  takeEnded(nowMs: number): readonly MemoryHold[] {
    const ended: MemoryHold[] = [];
    for (let next = this.#nextToEnd; next !== undefined && next.endMs <= nowMs; next = this.#nextToEnd) {
      this.delete(next.request.holdId);
      ended.push(next);
    }
    return ended;
  }

  /** How many holders are no ancestors of this owner, nor of another holder. */
  #branchesBeside(owner: string): number {
    const others = (this.#index?.owners ?? []).filter((other) => !isAncestor(other, owner));
    const above = new Set(others.flatMap((other) => ancestorsOf(other).slice(0, -1)));
    return others.filter((other) => !above.has(other)).length;
  }

  get #nextToEnd(): MemoryHold | undefined {
    return this.#index === undefined ? this.oldest : this.#index.ends.first;
  }
}

/** Counts over many holds, kept up to date. */
class HoldIndex {
  readonly ends: SortedList<MemoryHold> = new SortedList();
  /** By process. */
  readonly claims: Map<string, Set<MemoryHold>> = new Map();
  readonly #places = new Map<MemoryHold, Placed<MemoryHold>>();
  readonly #counts = new Map<string, number>();
  /** How many holds have each limit. */
  readonly #limits = new Map<number, number>();

  constructor(holds: Iterable<MemoryHold>) {
    for (const hold of holds) this.add(hold);
  }

  get owners(): readonly string[] {
    return [...this.#counts.keys()];
  }

  get limit(): number {
    return Math.min(...this.#limits.keys());
  }

  countOf(owner: string): number {
    return this.#counts.get(owner) ?? 0;
  }

  add(hold: MemoryHold): void {
    const { owner, process } = hold.request;
    this.#places.set(hold, this.ends.add(hold, hold.endMs));
    count(this.#counts, owner, 1);
    count(this.#limits, limitOf(hold.request), 1);
    if (!hold.isClaim) return;
    const claims = this.claims.get(process) ?? new Set();
    this.claims.set(process, claims.add(hold));
  }

  /** Removes a hold that is there; call it before the hold is changed. */
  delete(hold: MemoryHold): void {
    const { owner, process } = hold.request;
    this.ends.delete(this.#places.get(hold) as Placed<MemoryHold>);
    this.#places.delete(hold);
    count(this.#counts, owner, -1);
    count(this.#limits, limitOf(hold.request), -1);
    const claims = this.claims.get(process);
    if (claims?.delete(hold) && claims.size === 0) this.claims.delete(process);
  }
}

function count<K>(counts: Map<K, number>, key: K, by: 1 | -1): void {
  const sum = (counts.get(key) ?? 0) + by;
  if (sum === 0) counts.delete(key);
  else counts.set(key, sum);
}
