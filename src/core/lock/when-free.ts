import type { LockName } from '../model/key.ts';
import { acquireRules } from '../model/options.ts';
import type { AcquireOptions, WhenFreeOptions } from '../model/types.ts';
import type { Rules } from '../model/validate.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Branch } from '../scope/scope.ts';
import { Scope } from '../scope/scope.ts';
import { acquire } from './acquire.ts';

const { waitMs, signal, category, mode, permits, priority } = acquireRules;

/** What `whenFree` takes. */
export const whenFreeRules: Rules<WhenFreeOptions> = { waitMs, signal, category, mode, permits, priority };

/**
 * Waits in the key's queue and releases the grant at once: so the wait is as fair, as bounded and as well observed as that of
 * any acquire, in every store. The grant is of an owner of its own, since a re-entry would not wait; its lease is short, so
 * that a process that dies in that moment blocks the key for `claimMs` at most. Code outside a request or job gets a scope
 * for the moment.
 */
export async function whenFree(
  runtime: Runtime,
  branch: Branch | undefined,
  name: LockName,
  options: AcquireOptions,
): Promise<void> {
  const { settings, clock } = runtime;
  const leaseMs = Math.min(settings.claimMs, settings.leaseMs);
  const waiting = branch ?? new Scope(runtime, clock.randomId(), {}).root;
  const hold = await acquire(
    waiting,
    name,
    { ...options, reentrant: false, leaseMs, maxHoldMs: settings.maxHoldMs, renew: false },
    'code',
  );
  // The key was free, whatever the store says to this; a failure is told by its event.
  await hold.release().catch(() => {});
}
