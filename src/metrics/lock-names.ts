import { warnOnce } from '../core/base/process-state.ts';
import type { LockEvent } from '../core/index.ts';
import { describe } from '../core/model/validate.ts';

/** At most this many names become label values; each further one is `other`. */
const maxNames = 100;

/** The parts of a lock that its name in metrics and spans may use: never the key. */
export type NamedLock = Pick<LockEvent, 'category'>;

/** Gives each lock the name that its metrics carry: few values, never the key. */
export class LockNames {
  readonly #nameOf: (lock: NamedLock) => string;
  readonly #known = new Set<string>();

  constructor(nameOf: (lock: NamedLock) => string = ({ category }) => category ?? 'default') {
    this.#nameOf = nameOf;
  }

  of(lock: NamedLock): string {
    const name = this.#name(lock);
    if (this.#known.has(name)) return name;
    if (this.#known.size >= maxNames) {
      const message = `Locks have more than ${maxNames} names in metrics: the others are counted as "other"`;
      warnOnce('LOCK_METRIC_NAMES', `${message}. Return fewer names from \`lockName\`, or use fewer categories`);
      return 'other';
    }
    this.#known.add(name);
    return name;
  }

  /** An acquire must not fail because of the name that its metrics carry. */
  #name(lock: NamedLock): string {
    try {
      const name: unknown = this.#nameOf(lock);
      if (typeof name === 'string') return name;
      warnOnce('LOCK_METRIC_NAMES', `Expected \`lockName\` to return a string, got ${describe(name)}`);
    } catch (error) {
      warnOnce('LOCK_METRIC_NAMES', `Expected \`lockName\` to return a string, but it threw: ${describe(error)}`);
    }
    return 'other';
  }
}
