import type { Clock } from './clock.ts';
import type { Events } from './events.ts';
import type { Keeper } from './keeper.ts';
import type { LocksSettings } from './options.ts';
import type { LockStore } from './store/store.ts';
import type { StoreCalls } from './store-calls.ts';
import type { Waiting } from './waiting.ts';

/** What each part of one `Locks` works with. */
export interface Base {
  readonly settings: LocksSettings;
  readonly clock: Clock;
  readonly events: Events;
  readonly store: LockStore;
  readonly calls: StoreCalls;
  /** The random name of this process in the store. */
  readonly process: string;
}

/** One `Locks`, as its locks and scopes use it. */
export interface Runtime extends Base {
  readonly waiting: Waiting;
  readonly keeper: Keeper;
}
