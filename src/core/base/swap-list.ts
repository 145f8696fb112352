/** An item of a `SwapList`. `listIndex` is its index there, or -1 if it is in none. */
export interface Listed {
  listIndex: number;
}

/**
 * An unordered set, for items that each call adds and removes. A `Set` would cost more memory: each time it grows,
 * its old table survives and keeps the items from being collected early.
 */
export class SwapList<T extends Listed> implements Iterable<T> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  has(item: T): boolean {
    return item.listIndex >= 0;
  }

  add(item: T): void {
    if (item.listIndex >= 0) return;
    item.listIndex = this.#items.length;
    this.#items.push(item);
  }

  /** Returns whether the item was there. The last item moves to its index. */
  delete(item: T): boolean {
    const { listIndex: place } = item;
    if (place < 0) return false;
    item.listIndex = -1;
    const last = this.#items.pop() as T;
    if (last !== item) {
      this.#items[place] = last;
      last.listIndex = place;
    }
    return true;
  }

  /** Iterates over a copy: items may be added and removed meanwhile. */
  [Symbol.iterator](): Iterator<T> {
    return [...this.#items].values();
  }
}
