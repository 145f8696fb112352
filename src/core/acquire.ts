import { elapsedMs } from './clock.ts';
import { LockConfigError, LockLimitError, LocksClosedError, LockTimeoutError } from './errors.ts';
import { Grant } from './grant.ts';
import { ScopedHold } from './hold.ts';
import { Interruption } from './interruption.ts';
import type { LockName } from './key.ts';
import { type AcquireSettings, type AcquireTarget, acquireSettings } from './options.ts';
import type { Scope } from './scope.ts';
import type { AcquireOptions } from './types.ts';

/** Who asks: a guard gives up when its client leaves, a try does not wait. */
type Caller = 'code' | 'guard' | 'try';

/**
 * Acquires for a scope: by re-entry, without a store call, where the scope holds the key already; else from the store.
 * The options were checked. A try answers undefined where the key is not free; everybody else throws `LockTimeoutError`.
 */
export async function acquire<C extends Caller>(
  scope: Scope,
  name: LockName,
  options: AcquireOptions,
  caller: C,
): Promise<ScopedHold | (C extends 'try' ? undefined : never)> {
  const { runtime } = scope;
  const settings = acquireSettings(runtime.settings, options);
  const { key } = name;
  const interruption = new Interruption(key, scope, settings.signal, caller === 'guard');
  if (interruption.error !== undefined) throw interruption.error;
  const entered = settings.owner === 'hold' ? undefined : scope.reentrantGrant(name.id);
  if (entered !== undefined) return reenter(scope, entered, settings);
  if (runtime.isClosing) throw new LocksClosedError({ key });

  const startedAt = runtime.events.has('granted') ? runtime.clock.now() : undefined;
  const request = {
    id: name.id,
    holdId: runtime.clock.randomId(),
    owner: ownerOf(scope, settings),
    process: runtime.process,
    claimMs: Math.min(runtime.settings.claimMs, settings.leaseMs),
  };
  const terms = { leaseMs: settings.leaseMs, waitMs: caller === 'try' ? 0 : settings.waitMs, interruption };
  const granted = await runtime.waiting.acquire(key, request, terms);
  if ('freeInMs' in granted) {
    if (caller === 'try') return undefined as C extends 'try' ? undefined : never;
    runtime.events.emit('timeout', { key, owner: request.owner, holdId: request.holdId, waitedMs: 0 });
    throw new LockTimeoutError({ key, waitedMs: 0, retryAfterMs: granted.freeInMs });
  }
  const grant = new Grant(runtime.clock, key, request, settings.owner, settings, granted);
  grant.addHold(settings.leaseMs, settings.renew);
  const hold = addHold(scope, grant, settings);
  runtime.keeper.keep(grant);
  // The grant and the end may have come in one turn.
  const { error } = interruption;
  if (error !== undefined) {
    void hold.release();
    throw error;
  }
  if (startedAt !== undefined) {
    const waitedMs = elapsedMs(runtime.clock.now(), startedAt);
    runtime.events.emit('granted', { ...grant.event, fence: grant.fence, waitedMs });
  }
  return hold;
}

function reenter(scope: Scope, grant: Grant, settings: AcquireSettings & AcquireTarget): ScopedHold {
  const { runtime } = scope;
  if (!grant.isHeld) runtime.keeper.lose(grant, 'The lock was lost: its lease ended before it could be renewed');
  if (grant.lostError !== undefined) throw grant.lostError;
  if (settings.owner === 'request' && grant.ownerKind === 'trace') {
    throw new LockConfigError(
      "Expected a key that this request holds for its trace to be re-entered with `owner: 'trace'`, got `'request'`: give the outermost acquire `owner: 'request'`",
      { key: grant.key },
    );
  }
  if (grant.holdCount >= runtime.settings.maxReentry) {
    throw new LockLimitError(`The lock was re-entered ${grant.holdCount} times without a release`, { key: grant.key });
  }
  runtime.keeper.reenter(grant, settings.leaseMs, settings.renew);
  return addHold(scope, grant, settings);
}

function addHold(scope: Scope, grant: Grant, settings: AcquireSettings): ScopedHold {
  const hold = new ScopedHold(grant, scope.runtime.keeper, scope, settings.renew);
  scope.add(hold);
  return hold;
}

function ownerOf(scope: Scope, { owner }: AcquireTarget): string {
  if (owner === 'trace') return scope.owner;
  return owner === 'request' ? scope.requestOwner : scope.runtime.clock.randomId();
}
