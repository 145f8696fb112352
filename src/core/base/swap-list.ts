/** What is in a list knows its place there; -1 when it is in none. */
export interface Listed {
  place: number;
}

/**
 * A set without an order, for what comes and goes with every call. A `Set` would do, but for the memory: each time that it
 * makes room, its former table keeps what it held from the garbage collector's quick rounds.
 */
export class SwapList<T extends Listed> implements Iterable<T> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  has(item: T): boolean {
    return item.place >= 0;
  }

  add(item: T): void {
    if (item.place >= 0) return;
    item.place = this.#items.length;
    this.#items.push(item);
  }

  /** Answers whether it was there; another takes its place. */
  delete(item: T): boolean {
    const { place } = item;
    if (place < 0) return false;
    item.place = -1;
    const last = this.#items.pop() as T;
    if (last !== item) {
      this.#items[place] = last;
      last.place = place;
    }
    return true;
  }

  /** Over a copy: items may come and go meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#items].values();
  }
}
