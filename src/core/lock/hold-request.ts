import type { LockName } from '../model/key.ts';
import type { AcquireSettings, AcquireTarget } from '../model/options.ts';
import type { HoldRequest } from '../model/store.ts';
import type { Branch } from '../scope/scope.ts';

/** The request of a new hold, with a random hold id. */
export function requestOf(branch: Branch, { id }: LockName, settings: AcquireSettings & AcquireTarget): HoldRequest {
  const { clock, process, settings: defaults } = branch.scope.runtime;
  return {
    id,
    holdId: clock.randomId(),
    owner: branch.ownerAs(settings.reentrant),
    process,
    claimMs: Math.min(defaults.claimMs, settings.leaseMs),
    mode: settings.mode,
    permits: settings.permits,
    priority: settings.priority,
  };
}
