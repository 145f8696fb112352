import type { ReleaseReply } from '../model/store.ts';

type Status = ReleaseReply['status'];

interface Tombstone {
  readonly status: Status;
  readonly untilMs: number;
}

/** At least this many are kept before expired ones are removed. */
const minSweepSize = 1_000;
/** Expired ones are removed after this time at the latest. */
const sweepEveryMs = 60_000;

/**
 * The statuses of releases by hold id, each for as long as its release asked for. Expired ones are removed when there are twice as
 * many as after the last sweep, which makes a sweep cheap for each of them.
 */
export class MemoryTombstones {
  readonly #tombstones = new Map<string, Tombstone>();
  #sweepAt = minSweepSize;
  #sweptMs = 0;

  get(holdId: string, nowMs: number): Status | undefined {
    if (this.#tombstones.size === 0) return undefined;
    this.#sweep(nowMs);
    const known = this.#tombstones.get(holdId);
    return known !== undefined && known.untilMs > nowMs ? known.status : undefined;
  }

  add(holdId: string, status: Status, untilMs: number, nowMs: number): void {
    this.#tombstones.set(holdId, { status, untilMs });
    this.#sweep(nowMs);
  }

  get size(): number {
    return this.#tombstones.size;
  }

  #sweep(nowMs: number): void {
    if (this.#tombstones.size < this.#sweepAt && nowMs - this.#sweptMs < sweepEveryMs) return;
    for (const [id, { untilMs }] of this.#tombstones) if (untilMs <= nowMs) this.#tombstones.delete(id);
    this.#sweepAt = Math.max(minSweepSize, 2 * this.#tombstones.size);
    this.#sweptMs = nowMs;
  }
}
