/** An item of a list. `place` is its index there, or -1 if it is in none. */
export interface Listed {
  place: number;
}

/**
 * A set without an order, for items that come and go with every call. A `Set` would cost more memory: each time that it grows,
 * its old table survives, and keeps the items from being collected early.
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

  /** Returns whether the item was there. The last item takes its place. */
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

  /** Iterates over a copy: items may come and go meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#items].values();
  }
}
