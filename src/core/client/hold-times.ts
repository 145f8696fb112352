/** What a hold was for. */
interface Held {
  readonly id: string;
  readonly category: string | undefined;
}

const maxKeys = 256;
const maxCategories = 64;
/** The share of the newest hold in a mean: some ten holds are remembered. */
const newest = 0.2;

/**
 * How long the holds of this process lasted lately: decaying means of each key, of each category and of all. They say when
 * another try for a key is worth it, better than the lease does.
 */
export class HoldTimes {
  readonly #keys = new Means<string>(maxKeys);
  readonly #categories = new Means<string | undefined>(maxCategories);
  #all: number | undefined;

  /** A hold was released after so long. */
  record({ id, category }: Held, heldMs: number): void {
    this.#keys.add(id, heldMs);
    this.#categories.add(category, heldMs);
    this.#all = meanOf(this.#all, heldMs);
  }

  /** How long a hold of a key may last, in milliseconds; undefined if nothing is known. */
  typicalMs({ id, category }: Held): number | undefined {
    return this.#keys.get(id) ?? this.#categories.get(category) ?? this.#all;
  }
}

/** Means of the `max` keys that were used last, at least, and of as many more. No key is removed alone: that costs more. */
class Means<K> {
  readonly #max: number;
  #newer = new Map<K, number>();
  #older = new Map<K, number>();

  constructor(max: number) {
    this.#max = max;
  }

  get(key: K): number | undefined {
    return this.#newer.get(key) ?? this.#older.get(key);
  }

  add(key: K, heldMs: number): void {
    this.#newer.set(key, meanOf(this.get(key), heldMs));
    if (this.#newer.size < this.#max) return;
    this.#older = this.#newer;
    this.#newer = new Map();
  }
}

function meanOf(mean: number | undefined, heldMs: number): number {
  return mean === undefined ? heldMs : mean + newest * (heldMs - mean);
}
