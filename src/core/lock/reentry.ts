import type { Grant } from '../lease/grant.ts';
import { LockConfigError } from '../model/errors/mistakes.ts';
import { LockLimitError } from '../model/errors/refusals.ts';
import type { AcquireSettings } from '../model/options.ts';
import type { HoldRequest } from '../model/store.ts';
import type { AcquireOptions, HoldMode } from '../model/types.ts';
import type { Branch, Scope } from '../scope/scope.ts';
import type { Entry } from '../scope/scope-holds.ts';
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
  { reentrant }: AcquireSettings,
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
export function assertEnterable({ runtime }: Scope, grant: Grant, { reentrant, permits }: AcquireOptions): void {
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
