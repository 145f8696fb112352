import { onAbort } from '../base/abort-signals.ts';
import type { Grant } from '../lease/grant.ts';
import { DeadlockError } from '../model/errors.ts';
import type { LockName } from '../model/key.ts';
import type { HoldMode } from '../model/types.ts';
import type { Branch } from '../scope/scope.ts';
import type { Obstacle } from '../wait/task.ts';
import { lossOf } from './reentry.ts';

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
  const at = blockedAt(branch, id, mode);
  if (at === undefined) return undefined;
  let end = (): void => {};
  return {
    leaseRemainingMs: joined?.remainingMs ?? 0,
    listen: (onEnd) => {
      const check = (): void => {
        const lost = joined?.lostError === undefined ? undefined : lossOf(branch.scope, joined);
        const isBlocked = lost === undefined && blockedAt(branch, id, mode) !== undefined;
        const error = isBlocked ? cycleError(branch, name, mode) : lost;
        if (isBlocked && error === undefined) return;
        if (error === undefined) onFree();
        onEnd(error);
      };
      const leave = at.scope.holds.wait({ id, branch: at, from: branch, mode, check });
      const unsubscribe = joined && onAbort(joined.signal, check);
      end = () => {
        leave();
        unsubscribe?.();
      };
    },
    unlisten: () => end(),
  };
}

/** The branch itself, or one around it in this process, that another branch keeps from the lock. */
function blockedAt(branch: Branch, id: string, mode: HoldMode): Branch | undefined {
  for (let around: Branch | undefined = branch; around !== undefined; around = around.scope.root.parent) {
    if (around.scope.holds.entry(id, around, mode).blocker !== undefined) return around;
  }
  return undefined;
}

/** The error if a branch waits for itself, or would: a branch that has the key waits for it, directly or through others. */
export function cycleError(branch: Branch, { id, key, category }: LockName, mode: HoldMode): DeadlockError | undefined {
  for (let around: Branch | undefined = branch; around !== undefined; around = around.scope.root.parent) {
    if (!around.scope.holds.isCycle({ id, branch: around, mode }, branch)) continue;
    const cycle = [{ traceId: branch.traceId, key }];
    return new DeadlockError({ key, category, cycle }, 'Branches of this request wait for each other');
  }
  return undefined;
}
