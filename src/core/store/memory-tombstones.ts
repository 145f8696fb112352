import type { ReleaseReply } from './store.ts';

type Status = ReleaseReply['status'];

/**
 * What releases answered, by hold id; each for one to two times as long as the longest that was asked for. They are kept in
 * two generations, so that forgetting is one assignment.
 */
export class MemoryTombstones {
  #newer = new Map<string, Status>();
  #older = new Map<string, Status>();
  #longestMs = 0;
  #turnedMs = 0;

  find(holdId: string, nowMs: number): Status | undefined {
    if (this.#newer.size + this.#older.size === 0) return undefined;
    this.#turn(nowMs);
    return this.#newer.get(holdId) ?? this.#older.get(holdId);
  }

  /** To be kept for `forMs` at least. */
  add(holdId: string, status: Status, nowMs: number, forMs: number): void {
    this.#turn(nowMs);
    this.#longestMs = Math.max(this.#longestMs, forMs);
    this.#newer.set(holdId, status);
  }

  #turn(nowMs: number): void {
    const sinceMs = nowMs - this.#turnedMs;
    if (sinceMs <= this.#longestMs) return;
    this.#older = sinceMs > 2 * this.#longestMs ? new Map() : this.#newer;
    this.#newer = new Map();
    this.#turnedMs = nowMs;
  }
}
