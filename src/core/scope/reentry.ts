import type { Grant } from '../lease/grant.ts';
import { LockConfigError, LockLimitError, type LockLostError } from '../model/errors.ts';
import type { AcquireSettings, AcquireTarget } from '../model/options.ts';
import { ScopedHold } from './hold.ts';
import type { Scope } from './scope.ts';

/** Adds a hold to a grant that the scope has: no store call. Throws if the key was re-entered too often. */
export function reenter(scope: Scope, grant: Grant, settings: AcquireSettings): ScopedHold {
  const { runtime } = scope;
  if (grant.holdCount >= runtime.settings.maxReentry) {
    throw new LockLimitError(`The lock was re-entered ${grant.holdCount} times without a release`, { key: grant.key });
  }
  runtime.grants.reenter(grant, settings.leaseMs, settings.renew);
  const hold = new ScopedHold(grant, scope, settings.renew);
  scope.add(hold);
  return hold;
}

/** Throws if the grant is lost, or belongs to another owner than the acquire asks for. */
export function assertEnterable(scope: Scope, grant: Grant, settings: AcquireTarget): void {
  const lost = lossOf(scope, grant);
  if (lost !== undefined) throw lost;
  if (settings.owner === 'request' && grant.ownerKind === 'trace') {
    throw new LockConfigError(
      "Expected a key that this request holds for its trace to be re-entered with `owner: 'trace'`, got `'request'`: give the outermost acquire `owner: 'request'`",
      { key: grant.key },
    );
  }
}

/** The error of a lost grant, also if its lease has ended unnoticed. */
export function lossOf({ runtime }: Scope, grant: Grant): LockLostError | undefined {
  if (!grant.isHeld) runtime.grants.lose(grant, 'The lock was lost: its lease ended before it could be renewed');
  return grant.lostError;
}
