import type { Grant } from '../lease/grant.ts';
import { DeadlockError } from '../model/errors/refusals.ts';
import type { LockName } from '../model/key.ts';
import type { HoldMode } from '../model/types.ts';
import type { Branch } from '../scope/scope.ts';
import type { Obstacle } from '../wait/task.ts';

/**
 * The branch of the same request that an acquire must wait for before it may ask the store; undefined if there is none. `joined`
 * is the grant beneath both. The wait fails if that is lost, or if a branch that ends passes its hold to a branch that waits for
 * the acquire. Calls `onFree` as soon as nothing is in the way.
 */
export function branchObstacle(
  branch: Branch,
  name: LockName,
  mode: HoldMode,
  joined: Grant | undefined,
  onFree: () => void,
): Obstacle | undefined {
  const { id } = name;
  if (!isBlocked(branch, id, mode)) return undefined;
  const leaves: (() => void)[] = [];
  let hasEnded = false;
  return {
    leaseRemainingMs: joined?.remainingMs ?? 0,
    listen: (onEnd) => {
      const check = (): void => {
        if (hasEnded) return;
        const lost = joined?.lostError === undefined ? undefined : branch.scope.runtime.grants.lossOf(joined);
        const mustWait = lost === undefined && isBlocked(branch, id, mode);
        const error = mustWait ? cycleError(branch, name, mode) : lost;
        if (mustWait && error === undefined) return;
        if (error === undefined) onFree();
        onEnd(error);
      };
      // When one of these scopes lets it pass, another one may not.
      for (let around: Branch | undefined = branch; around !== undefined; around = around.scope.root.parent) {
        leaves.push(around.scope.holds.wait({ id, branch: around, from: branch, mode, check }));
      }
    },
    unlisten: () => {
      hasEnded = true;
      for (const leave of leaves) leave();
    },
  };
}

/** Whether another branch keeps a branch from the lock, in its own scope or in one of this process around it. */
export function isBlocked(branch: Branch, id: string, mode: HoldMode): boolean {
  return isAtAnyScope(branch, (around) => around.scope.holds.entry(id, around, mode, branch).blocker !== undefined);
}

/** The error if a branch waits for itself, or would: a branch that has the key waits for it, directly or through others. */
export function cycleError(branch: Branch, { id, key, category }: LockName, mode: HoldMode): DeadlockError | undefined {
  const isCycle = (around: Branch): boolean => around.scope.holds.isCycle({ id, branch: around, mode }, branch);
  if (!isAtAnyScope(branch, isCycle)) return undefined;
  const cycle = [{ traceId: branch.traceId, key }];
  return new DeadlockError({ key, category, cycle }, 'Branches of this request wait for each other');
}

/** Asks about the branch itself, and in each scope of this process around its own about the branch that it is nested in. */
function isAtAnyScope(branch: Branch, test: (around: Branch) => boolean): boolean {
  for (let around: Branch | undefined = branch; around !== undefined; around = around.scope.root.parent) {
    if (test(around)) return true;
  }
  return false;
}
