import { warnOnce } from '../core/base/process-state.ts';
import type { LockEvent } from '../core/index.ts';

/** So many names become label values; each further one is `other`. */
const maxNames = 100;

/** Gives each lock the name that its metrics carry: few values, never the key. */
export class LockNames {
  readonly #nameOf: (event: Pick<LockEvent, 'category'>) => string;
  readonly #known = new Set<string>();

  constructor(nameOf: (event: Pick<LockEvent, 'category'>) => string = ({ category }) => category ?? 'default') {
    this.#nameOf = nameOf;
  }

  of(event: Pick<LockEvent, 'category'>): string {
    const name = this.#nameOf(event);
    if (this.#known.has(name)) return name;
    if (this.#known.size >= maxNames) {
      const message = `Locks have more than ${maxNames} names in metrics: the others are counted as "other"`;
      warnOnce('LOCK_METRIC_NAMES', `${message}. Return fewer names from \`lockName\`, or use fewer categories`);
      return 'other';
    }
    this.#known.add(name);
    return name;
  }
}
