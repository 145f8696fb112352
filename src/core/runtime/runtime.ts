import type { Clock } from '../base/clock.ts';
import type { StoreCalls } from '../client/calls.ts';
import type { GrantRegistry } from '../lease/grant-registry.ts';
import type { Events } from '../model/events.ts';
import type { LocksSettings } from '../model/options.ts';
import type { LockStore } from '../model/store.ts';
import type { PendingAcquires } from '../wait/pending-acquires.ts';

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
  readonly waiting: PendingAcquires;
  readonly keeper: GrantRegistry;
}
