import type { ReleaseReply } from '../../model/store.ts';

type Status = ReleaseReply['status'];

interface Tombstone {
  readonly status: Status;
  readonly untilMs: number;
}

/** So many are kept before it is looked for the first time which of them are over. */
const fewest = 1_000;
/** After so long it is looked all the same: there may have been many once. */
const lookEveryMs = 60_000;

/**
 * What releases have answered, by hold id, each for as long as was asked for. What is over goes when there are twice as many
 * as the last look has left: so a look costs each of them little, and one that is to last for days keeps no other.
 */
export class MemoryTombstones {
  readonly #tombstones = new Map<string, Tombstone>();
  #lookAt = fewest;
  #lookedMs = 0;

  get(holdId: string, nowMs: number): Status | undefined {
    if (this.#tombstones.size === 0) return undefined;
    this.#look(nowMs);
    const known = this.#tombstones.get(holdId);
    return known !== undefined && known.untilMs > nowMs ? known.status : undefined;
  }

  add(holdId: string, status: Status, untilMs: number, nowMs: number): void {
    this.#tombstones.set(holdId, { status, untilMs });
    this.#look(nowMs);
  }

  get size(): number {
    return this.#tombstones.size;
  }

  #look(nowMs: number): void {
    if (this.#tombstones.size < this.#lookAt && nowMs - this.#lookedMs < lookEveryMs) return;
    for (const [id, { untilMs }] of this.#tombstones) if (untilMs <= nowMs) this.#tombstones.delete(id);
    this.#lookAt = Math.max(fewest, 2 * this.#tombstones.size);
    this.#lookedMs = nowMs;
  }
}
