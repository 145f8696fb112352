import type { CallSites } from '../base/call-site.ts';
import type { StoreAccess } from '../client/access.ts';
import type { Releases } from '../client/releases.ts';
import type { GrantRegistry } from '../lease/grant-registry.ts';
import type { PendingAcquires } from '../wait/pending-acquires.ts';

/** One `Locks`, as its locks and scopes use it. */
export interface Runtime extends StoreAccess {
  /** The `Locks` itself; locks.ts knows its type. */
  readonly locks: object;
  readonly callSites: CallSites;
  readonly acquires: PendingAcquires;
  readonly grants: GrantRegistry;
  readonly releases: Releases;
}
