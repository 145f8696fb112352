import type { Grant } from '../lease/grant.ts';
import type { HeldBy, LockHolder } from '../model/errors/lock-holder.ts';
import { LockConfigError } from '../model/errors/mistakes.ts';
import type { LockName } from '../model/key.ts';
import type { AcquireSettings } from '../model/options.ts';
import type { HoldRequest } from '../model/store.ts';
import type { Reentrant } from '../model/types.ts';
import type { Branch, Scope } from './scope.ts';
import type { OwnedHold } from './scope-holds.ts';

/** Whether an acquire waited for its own request or trace, if the holder is known. */
export function heldBy(
  branch: Branch,
  { id, mode }: HoldRequest,
  { reentrant }: AcquireSettings,
  holder: LockHolder | undefined,
): HeldBy | undefined {
  for (const { grant, isNested, mayEnter } of heldAround(branch, id, reentrant)) {
    // A permit is one of several.
    const isCompatible = mode === 'permit' || (mode === 'read' && grant.request.mode === 'read');
    if (!mayEnter && !isCompatible) return isNested ? 'request' : 'branch';
  }
  return holder !== undefined && holder.traceId === branch.traceId ? 'trace' : undefined;
}

/** Whether a call around the branch, in its own scope or in one around it, holds the key by a grant that the branch may enter. */
export function isBeneathHold(branch: Branch, id: string, reentrant: Reentrant): boolean {
  for (const { mayEnter } of heldAround(branch, id, reentrant)) if (mayEnter) return true;
  return false;
}

/**
 * Throws if an acquire would wait for its own request: a guard of the request keeps the key until the work ends, and one of the
 * two is not reentrant. Without this, the acquire would wait in vain for its whole `waitMs`.
 */
export function assertNotOwnGuards(scope: Scope, name: LockName, { reentrant, mode, permits }: AcquireSettings): void {
  const guarding = scope.guarded.filter((hold) => hold.grant.request.id === name.id && hold.isHeld());
  const blocking = guarding.find((hold) => mode !== 'read' || hold.grant.request.mode === 'write');
  if (blocking === undefined) return;
  const owners = new Set(guarding.map((hold) => hold.grant.request.owner));
  if (permits !== undefined && owners.size < permits) return;
  const isGuards = blocking.grant.reentrant === false;
  const own = isGuards ? 'both have `reentrant: false`' : 'this acquire has `reentrant: false`, as `whenFree` has';
  const which = reentrant !== false ? 'its guard has `reentrant: false`' : own;
  const change = reentrant !== false ? 'the guard' : isGuards ? 'both' : 'this acquire';
  throw new LockConfigError(
    `Expected a key that a guard of this request holds to be re-entered, got an acquire that would wait for its own request: ${which}, which is not reentrant. Release the guard's hold before, or give ${change} \`reentrant: 'trace'\``,
    name,
  );
}

/** A grant that the scope of a branch has, or a scope around it. */
interface HeldAround {
  readonly grant: Grant;
  /** Whether the branch is within the one that holds it. */
  readonly isNested: boolean;
  readonly mayEnter: boolean;
}

/** What is held of a lock in the scope of a branch and in those around it. */
function* heldAround(branch: Branch, id: string, reentrant: Reentrant): Iterable<HeldAround> {
  for (let around: OwnedHold['work'] | undefined = branch; around !== undefined; around = around.scope.root.parent) {
    for (const { grant, work } of around.scope.holds.all) {
      if (grant.request.id !== id || !grant.isHeld) continue;
      const isNested = around.isWithin(work);
      // It enters the hold of a call around it, unless one of the two is not reentrant, or the other one is for its scope alone.
      const isOpen = grant.reentrant === 'trace' || (grant.reentrant === 'request' && around.scope === branch.scope);
      yield { grant, isNested, mayEnter: isNested && isOpen && reentrant !== false };
    }
  }
}
