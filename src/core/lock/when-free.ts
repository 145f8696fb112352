import type { LockName } from '../model/key.ts';
import { acquireRules } from '../model/options.ts';
import type { AcquireOptions, WhenFreeOptions } from '../model/types.ts';
import type { Rules } from '../model/validate.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { type Branch, Scope } from '../scope/scope.ts';
import { acquire } from './acquire.ts';

const { waitMs, signal, category, mode, permits, priority } = acquireRules;

/** The options of `whenFree`. */
export const whenFreeRules: Rules<WhenFreeOptions> = { waitMs, signal, category, mode, permits, priority };

/**
 * Waits in the key's queue and releases the grant at once: the wait is as fair, bounded and observable as that of any acquire, in
 * every store. The grant has a new owner, since a re-entry would not wait. Its lease is short: a process that dies at this moment
 * blocks the key for `claimMs` at most. Code outside a request or job gets a temporary scope.
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
  // The key was free, even if this fails; a failure emits an event.
  await hold.release().catch(() => {});
}
