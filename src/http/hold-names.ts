import type { Hold } from '../core/model/types.ts';

declare global {
  /**
   * Sets the `holdName` in the types, for an application that already has a `lock` on its requests:
   * `declare global { interface ReenlockTypes { holdName: 'hold' } }`. Then a request has `hold` and `holds`.
   */
  interface ReenlockTypes {}
}

/** The names of the newest hold and of all holds on a request. */
export function holdNames(chosen = 'lock'): readonly [newest: string, all: string] {
  return [chosen, `${chosen}s`];
}

type HoldName = ReenlockTypes extends { holdName: infer Name extends string } ? Name : 'lock';

/** The properties of a guarded request. Applications may choose another name than `lock`, by `traceContext({ holdName })`. */
export type ShownHolds = {
  [Name in keyof Holds as Name extends 'lock' ? HoldName : `${HoldName}s`]: Holds[Name];
};

interface Holds {
  /**
   * The hold of this request's newest guard. If that has several keys, it is one hold for all of them, as that of
   * `lock.acquireAll`: its `fence` and `detach` throw, since each key has its own in `locks`.
   */
  lock?: Hold;
  /** All holds that guards acquired for this request, by key. */
  locks?: ReadonlyMap<string, Hold>;
}
