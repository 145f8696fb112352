import type { Grant } from '../lease/grant.ts';
import type { HeldBy, LockHolder } from '../model/errors/lock-holder.ts';
import { LockConfigError } from '../model/errors/mistakes.ts';
import { LockLimitError } from '../model/errors/refusals.ts';
import type { LockName } from '../model/key.ts';
import type { AcquireSettings } from '../model/options.ts';
import type { HoldRequest } from '../model/store.ts';
import type { HoldMode, Reentrant } from '../model/types.ts';
import type { Branch, Scope } from '../scope/scope.ts';
import type { Entry, OwnedHold } from '../scope/scope-holds.ts';
import { ScopedHold } from './hold.ts';

/**
 * Whether a branch enters a grant of its scope without a store call. If others may hold the key below a branch, the store must
 * know each branch that has it. Each branch needs its own permit.
 */
export function isLocal(branch: Branch, { blocker, isAlongside }: Entry, grant: Grant, mode: HoldMode): boolean {
  if (blocker !== undefined || isAlongside || (mode === 'write' && grant.request.mode !== 'write')) return false;
  if (mode !== 'permit' && !branch.scope.root.isShared) return true;
  const owner = branch.ownerAs(grant.reentrant);
  return grant.request.owner === owner || (mode !== 'permit' && isLeft(grant, owner));
}

/** A grant that an ended branch has left, for a branch that the store can't let in. */
export interface Left {
  readonly grant: Grant;
  /** Whether no other branch is in it. */
  readonly isFree: boolean;
}

/**
 * The grant that keeps an acquire waiting in the store although its branch may enter it: a branch that has ended has left it to
 * one around this branch. The acquire must go on in its scope.
 */
export function leftTo(
  branch: Branch,
  { id, owner, mode, permits }: HoldRequest,
  { reentrant }: Pick<AcquireSettings, 'reentrant'>,
): Left | undefined {
  const { holds } = branch.scope;
  // Mostly so. Hundreds may wait in one scope, and each looks at each change.
  if (holds.newestHold(id, branch) === undefined) return undefined;
  const entry = holds.entry(id, branch, mode);
  const { grant, blocker } = entry;
  if (grant?.isHeld !== true || !isLeft(grant, owner)) return undefined;
  // It may have been acquired with other options. A branch needs its own permit.
  if (grant.reentrant !== reentrant || grant.request.permits !== undefined || permits !== undefined) return undefined;
  const isFree = isLocal(branch, entry, grant, mode);
  return isFree || blocker !== undefined ? { grant, isFree } : undefined;
}

/** Whether only the scope can let an owner into a grant: the store can't, and no service that the ended branch called is in it. */
function isLeft(grant: Grant, owner: string): boolean {
  return grant.isLeftBeside(owner) && !grant.isShared;
}

/** Adds a hold to a grant of the scope, without a store call. Throws if the key was re-entered too often. */
export function reenter(branch: Branch, grant: Grant, settings: AcquireSettings): ScopedHold {
  const { scope } = branch;
  const { runtime } = scope;
  if (grant.holdCount >= runtime.settings.maxReentry) {
    throw new LockLimitError(`The lock was re-entered ${grant.holdCount} times without a release`, grant);
  }
  runtime.grants.reenter(grant, settings.leaseMs, settings.renew);
  const hold = new ScopedHold(grant, branch, settings);
  scope.holds.add(hold);
  return hold;
}

/**
 * Throws if the grant is lost, has other permits than the acquire asks for, or may be re-entered by more code than the acquire
 * itself asks for; defaults ask for nothing.
 */
export function assertEnterable(
  { runtime }: Scope,
  grant: Grant,
  { reentrant, permits }: { readonly reentrant?: Reentrant | undefined; readonly permits?: number | undefined },
): void {
  const lost = runtime.grants.lossOf(grant);
  if (lost !== undefined) throw lost;
  const has = grant.request.permits;
  if (has !== permits) {
    const [expected, got] = [has, permits].map((number) => (number === undefined ? 'none' : `\`${number}\``));
    throw new LockConfigError(
      `Expected an acquire that re-enters a hold of its request to have the \`permits\` of that hold, ${expected}, got ${got}: give both the same number`,
      grant,
    );
  }
  if (reentrant === 'request' && grant.reentrant === 'trace') {
    throw new LockConfigError(
      "Expected a key that this request holds for its trace to be re-entered with `reentrant: 'trace'`, got `'request'`: give the outermost acquire `reentrant: 'request'`",
      grant,
    );
  }
}

/**
 * Throws if an acquire would wait for its own request: a guard of the request keeps the key until the work ends, and one of the
 * two is not reentrant. Without this, the acquire would wait in vain for its whole `waitMs`.
 */
export function assertNotOwnGuards(
  scope: Scope,
  name: LockName,
  { reentrant, mode, permits }: Pick<AcquireSettings, 'reentrant' | 'mode' | 'permits'>,
): void {
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

/** Whether an acquire waited for its own request or trace, if the holder is known. */
export function heldBy(
  branch: Branch,
  { id, mode }: HoldRequest,
  { reentrant }: Pick<AcquireSettings, 'reentrant'>,
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
