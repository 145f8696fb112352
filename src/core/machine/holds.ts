import type { HoldRequest } from '../model/store.ts';
import { type Placed, SortedList } from './sorted-list.ts';

/** A hold in memory. */
export interface MemoryHold {
  readonly request: HoldRequest;
  fence: number;
  endMs: number;
  isClaim: boolean;
  /** Whether its fence rose after it was granted: it may be renewed with the fence that it got. */
  isRaised: boolean;
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

  get hasWriter(): boolean {
    return this.#index === undefined ? this.oldest?.request.mode === 'write' : this.#index.writers > 0;
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

  /** Whether one more may come: different owners share a lock only as readers, or as far as there are permits. */
  admits({ owner, mode, permits }: HoldRequest): boolean {
    const own = this.countOf(owner);
    if (own === this.size) return true;
    if (permits !== undefined) return own > 0 || this.#owners < permits;
    return mode === 'read' && !this.hasWriter;
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

  /** Removes and returns those whose leases are over. */
  takeEnded(nowMs: number): readonly MemoryHold[] {
    const ended: MemoryHold[] = [];
    for (let next = this.#nextToEnd; next !== undefined && next.endMs <= nowMs; next = this.#nextToEnd) {
      this.delete(next.request.holdId);
      ended.push(next);
    }
    return ended;
  }

  get #owners(): number {
    return this.#index === undefined ? this.size : this.#index.owners;
  }

  get #nextToEnd(): MemoryHold | undefined {
    return this.#index === undefined ? this.oldest : this.#index.ends.first;
  }
}

/** What is asked of many holds, kept up to date. */
class HoldIndex {
  readonly ends: SortedList<MemoryHold> = new SortedList();
  /** By process. */
  readonly claims: Map<string, Set<MemoryHold>> = new Map();
  writers = 0;
  readonly #places = new Map<MemoryHold, Placed<MemoryHold>>();
  readonly #counts = new Map<string, number>();

  constructor(holds: Iterable<MemoryHold>) {
    for (const hold of holds) this.add(hold);
  }

  get owners(): number {
    return this.#counts.size;
  }

  countOf(owner: string): number {
    return this.#counts.get(owner) ?? 0;
  }

  add(hold: MemoryHold): void {
    const { owner, mode, process } = hold.request;
    this.#places.set(hold, this.ends.add(hold, hold.endMs));
    this.#counts.set(owner, this.countOf(owner) + 1);
    if (mode === 'write') this.writers += 1;
    if (!hold.isClaim) return;
    const claims = this.claims.get(process) ?? new Set();
    this.claims.set(process, claims.add(hold));
  }

  /** Removes a hold that is there; call it before the hold is changed. */
  delete(hold: MemoryHold): void {
    const { owner, mode, process } = hold.request;
    this.ends.delete(this.#places.get(hold) as Placed<MemoryHold>);
    this.#places.delete(hold);
    const count = this.countOf(owner) - 1;
    if (count === 0) this.#counts.delete(owner);
    else this.#counts.set(owner, count);
    if (mode === 'write') this.writers -= 1;
    const claims = this.claims.get(process);
    if (claims?.delete(hold) && claims.size === 0) this.claims.delete(process);
  }
}
