import type { Hold } from '../model/types.ts';

/** The properties where handlers find the holds that guards acquired for a request. */
export interface Exposing {
  lock?: Hold;
  locks?: ReadonlyMap<string, Hold>;
}

/**
 * Puts a guard's holds where handlers look for them: the newest hold, and all holds by key. If a guard let the request in
 * without a hold, there is no newest one: a hold of an earlier guard must not be mistaken for it.
 */
export function exposeHolds(target: Exposing, holds: readonly Hold[]): void {
  if (holds.length === 0) {
    delete target.lock;
    return;
  }
  // The application may use the name for something else.
  const all = new Map(target.locks instanceof Map ? target.locks : undefined);
  for (const hold of holds) {
    all.set(hold.key, hold);
  }
  show(target, 'lock', holds.at(-1));
  show(target, 'locks', all);
}

/** Not enumerable: copies for views, logs and responses must not contain holds. */
function show(target: Exposing, name: keyof Exposing, value: unknown): void {
  Object.defineProperty(target, name, { value, configurable: true, enumerable: false, writable: true });
}

/** The same for one request, with a map that is only built when it is read. */
export class ExposedHolds {
  readonly #holds: Hold[] = [];
  #lock: Hold | undefined;
  #locks: ReadonlyMap<string, Hold> | undefined;

  get lock(): Hold | undefined {
    return this.#lock;
  }

  get locks(): ReadonlyMap<string, Hold> | undefined {
    if (this.#holds.length > 0) this.#locks ??= new Map(this.#holds.map((hold) => [hold.key, hold]));
    return this.#locks;
  }

  add(holds: readonly Hold[]): void {
    this.#lock = holds.at(-1);
    if (holds.length === 0) return;
    this.#holds.push(...holds);
    this.#locks = undefined;
  }
}
