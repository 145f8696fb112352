/** An item in a sorted list. Items of equal place are in the order in which they were added. */
export interface Placed<T> {
  readonly item: T;
  readonly place: number;
  readonly order: number;
}

/** A longer chunk is split in two. */
const maxChunk = 512;

/**
 * Items in the order of their places, ten thousand of them or one. They are kept in sorted chunks: to add, remove or count
 * touches one chunk, and the sizes of the others.
 */
export class SortedList<T> implements Iterable<T> {
  /** None is empty, except the only one of an empty list. */
  readonly #chunks: Placed<T>[][] = [[]];
  #added = 0;

  get first(): T | undefined {
    return this.#chunks[0]?.[0]?.item;
  }

  get last(): T | undefined {
    return this.#chunks.at(-1)?.at(-1)?.item;
  }

  /** Adds an item. Pass what it returns to `delete` and `rankOf`. */
  add(item: T, place: number): Placed<T> {
    this.#added += 1;
    const placed = { item, place, order: this.#added };
    const index = this.#chunkOf(placed);
    const chunk = this.#chunks[index] as Placed<T>[];
    const last = chunk.at(-1);
    if (last === undefined || isBefore(last, placed)) chunk.push(placed);
    else chunk.splice(indexIn(chunk, placed), 0, placed);
    if (chunk.length > maxChunk) this.#chunks.splice(index + 1, 0, chunk.splice(maxChunk / 2));
    return placed;
  }

  /** Removes an item that is there. */
  delete(placed: Placed<T>): void {
    const index = this.#chunkOf(placed);
    const chunk = this.#chunks[index] as Placed<T>[];
    if (chunk.at(-1) === placed) chunk.pop();
    else chunk.splice(indexIn(chunk, placed), 1);
    if (chunk.length === 0 && this.#chunks.length > 1) this.#chunks.splice(index, 1);
  }

  /** How many items are before one that is there. */
  rankOf(placed: Placed<T>): number {
    const index = this.#chunkOf(placed);
    const before = this.#chunks.slice(0, index).reduce((sum, { length }) => sum + length, 0);
    return before + indexIn(this.#chunks[index] as Placed<T>[], placed);
  }

  /** The item at an index. */
  at(rank: number): T | undefined {
    let left = rank;
    for (const chunk of this.#chunks) {
      if (left < chunk.length) return chunk[left]?.item;
      left -= chunk.length;
    }
    return undefined;
  }

  *[Symbol.iterator](): Iterator<T> {
    for (const chunk of this.#chunks) for (const { item } of chunk) yield item;
  }

  /** The first chunk whose last item is not before this one; otherwise the last chunk. */
  #chunkOf(placed: Placed<T>): number {
    const last = this.#chunks.length - 1;
    return firstIndex(last, (index) => !isBefore(this.#chunks[index]?.at(-1) as Placed<T>, placed));
  }
}

function indexIn<T>(chunk: readonly Placed<T>[], placed: Placed<T>): number {
  return firstIndex(chunk.length, (index) => !isBefore(chunk[index] as Placed<T>, placed));
}

function isBefore(one: Placed<unknown>, other: Placed<unknown>): boolean {
  return byPlace(one, other) < 0;
}

/** Compares two items of a list for a sort. */
export function byPlace(one: Placed<unknown>, other: Placed<unknown>): number {
  return one.place - other.place || one.order - other.order;
}

/** The first index below `length` from which on a condition is true; `length` if there is none. */
function firstIndex(length: number, isTrue: (index: number) => boolean): number {
  let [from, to] = [0, length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (isTrue(middle)) to = middle;
    else from = middle + 1;
  }
  return from;
}
