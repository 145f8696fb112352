import type { Clock } from '../base/clock.ts';
import type { Events } from '../model/events.ts';
import type { LocksSettings } from '../model/options.ts';
import type { HoldTimes } from './hold-times.ts';
import type { StoreClient } from './store-client.ts';

/** What each part of one `Locks` works with. */
export interface StoreAccess {
  readonly settings: LocksSettings;
  readonly clock: Clock;
  readonly events: Events;
  readonly client: StoreClient;
  readonly holdTimes: HoldTimes;
  /** The random name of this process in the store. */
  readonly process: string;
}
