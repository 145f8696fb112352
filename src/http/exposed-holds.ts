import type { Hold } from '../core/model/types.ts';

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
