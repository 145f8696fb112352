/** What a hold was for. */
interface Held {
  readonly id: string;
  readonly category: string | undefined;
}

const maxKeys = 256;
const maxCategories = 64;
/** The share of the newest hold in a mean, which thereby covers about ten holds. */
const newest = 0.2;

/**
 * How long recent holds of this process lasted: decaying means of each key, of each category and of all. They predict better
 * than the lease when to try a key again.
 */
export class HoldTimes {
  readonly #keys = new Means<string>(maxKeys);
  readonly #categories = new Means<string | undefined>(maxCategories);
  #all: number | undefined;

  /** Records a hold that was released. */
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

/** Means of the `max` to `2 * max` keys used last. Keys are dropped together: to drop each alone costs more. */
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
