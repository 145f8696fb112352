import type { Hold } from '../model/types.ts';

/** Where handlers find what guards acquired for a request. */
export interface Exposing {
  lock?: Hold;
  locks?: ReadonlyMap<string, Hold>;
}

/**
 * Puts what a guard acquired where handlers look for it: the newest hold, and all by key. Where the request passed
 * without, there is no newest one: that of a guard before must not be taken for it.
 */
export function exposeHolds(target: Exposing, holds: readonly Hold[]): void {
  if (holds.length === 0) {
    delete target.lock;
    return;
  }
  // An application may have something else there.
  const all = new Map(target.locks instanceof Map ? target.locks : undefined);
  for (const hold of holds) {
    all.set(hold.key, hold);
    target.lock = hold;
  }
  target.locks = all;
}

/** The same for a request, where the map is made when somebody asks for it. */
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
