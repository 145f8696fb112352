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
  readonly #keys = new Map<string, number>();
  readonly #categories = new Map<string | undefined, number>();
  #all: number | undefined;

  /** A hold was released after so long. */
  record({ id, category }: Held, heldMs: number): void {
    remember(this.#keys, id, heldMs, maxKeys);
    remember(this.#categories, category, heldMs, maxCategories);
    this.#all = meanOf(this.#all, heldMs);
  }

  /** How long a hold of a key may last, in milliseconds; undefined if nothing is known. */
  typicalMs({ id, category }: Held): number | undefined {
    return this.#keys.get(id) ?? this.#categories.get(category) ?? this.#all;
  }
}

/** The key that came first makes room; it comes back with its next hold. To move a key at each use would cost more than it gives. */
function remember<K>(means: Map<K, number>, key: K, heldMs: number, max: number): void {
  means.set(key, meanOf(means.get(key), heldMs));
  if (means.size > max) means.delete(means.keys().next().value as K);
}

function meanOf(mean: number | undefined, heldMs: number): number {
  return mean === undefined ? heldMs : mean + newest * (heldMs - mean);
}
