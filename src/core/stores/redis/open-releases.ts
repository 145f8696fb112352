import type { HoldRequest } from '../../model/store.ts';

/** What of a hold tells its releases from others. */
type Released = Pick<HoldRequest, 'id' | 'holdId'>;

/** A power of two. */
const chains = 4_096;

/** A hold whose release has no answer, and the next one of its chain. */
class OpenRelease {
  readonly id: string;
  readonly holdId: string;
  overMs: number;
  next: OpenRelease | undefined;

  constructor({ id, holdId }: Released, overMs: number, next: OpenRelease | undefined) {
    this.id = id;
    this.holdId = holdId;
    this.overMs = overMs;
    this.next = next;
  }
}

/**
 * The holds whose releases have no answer yet: a hash table by lock, of a fixed size. It is in place of a `Map`, which would
 * cost memory: each time that one makes room, its former table, until a full garbage collection, keeps alive what was in it.
 * For the same reason, what is removed keeps nothing of its chain.
 */
export class OpenReleases {
  readonly #heads: (OpenRelease | undefined)[] = Array.from({ length: chains }, () => undefined);
  #size = 0;

  /** Whether one of another hold on this lock is open, and not over by `nowMs`. */
  hasOther({ id, holdId }: Released, nowMs: number): boolean {
    for (let each = this.#heads[chainOf(id)]; each !== undefined; each = each.next) {
      if (each.id === id && each.holdId !== holdId && each.overMs > nowMs) return true;
    }
    return false;
  }

  /** Whether none is open: asked first, it costs less. */
  get isEmpty(): boolean {
    return this.#size === 0;
  }

  /** A release was sent that counts until `overMs`, on the clock of `nowMs`. What is over in the same chain goes. */
  open(released: Released, nowMs: number, overMs: number): void {
    const { id, holdId } = released;
    const chain = chainOf(id);
    let own: OpenRelease | undefined;
    let before: OpenRelease | undefined;
    for (let each = this.#heads[chain]; each !== undefined; ) {
      const { next } = each;
      if (each.overMs <= nowMs) this.#remove(chain, before, each);
      else {
        if (each.id === id && each.holdId === holdId) own = each;
        before = each;
      }
      each = next;
    }
    if (own !== undefined) own.overMs = overMs;
    else {
      this.#heads[chain] = new OpenRelease(released, overMs, this.#heads[chain]);
      this.#size += 1;
    }
  }

  /** A release was answered: with it, every earlier one of the same hold is settled. */
  close({ id, holdId }: Released): void {
    const chain = chainOf(id);
    let before: OpenRelease | undefined;
    for (let each = this.#heads[chain]; each !== undefined; each = each.next) {
      if (each.holdId === holdId && each.id === id) {
        this.#remove(chain, before, each);
        return;
      }
      before = each;
    }
  }

  #remove(chain: number, before: OpenRelease | undefined, each: OpenRelease): void {
    if (before === undefined) this.#heads[chain] = each.next;
    else before.next = each.next;
    each.next = undefined;
    this.#size -= 1;
  }
}

/** By the whole name: keys of one application have their beginnings in common, or their ends. */
function chainOf(id: string): number {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = (Math.imul(hash, 31) + id.charCodeAt(i)) | 0;
  return (hash ^ (hash >>> 12)) & (chains - 1);
}
