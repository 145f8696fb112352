import { elapsedMs, type Instant } from './clock.ts';
import { LockConfigError, LockLimitError, LocksClosedError, LockTimeoutError } from './errors.ts';
import { Grant } from './grant.ts';
import type { Granted } from './granted.ts';
import { ScopedHold } from './hold.ts';
import { Interruption } from './interruption.ts';
import type { LockName } from './key.ts';
import { type AcquireSettings, type AcquireTarget, acquireSettings } from './options.ts';
import type { Scope } from './scope.ts';
import type { HoldRequest } from './store/store.ts';
import type { AcquireOptions } from './types.ts';
import type { Asker } from './wait-queue.ts';

/** Who asks: a guard gives up when its client leaves, a try does not wait. */
type Caller = 'code' | 'guard' | 'try';

/**
 * Acquires for a scope: by re-entry, without a store call, where the scope holds the key already; else from the store.
 * The options were checked. A try answers undefined where the key is not free; everybody else rejects with
 * `LockTimeoutError`. Where it throws, nothing was asked.
 */
export function acquire<C extends Caller>(
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
  if (entered !== undefined) return Promise.resolve(reenter(scope, entered, settings));
  if (runtime.isClosing) throw new LocksClosedError({ key });

  const request = {
    id: name.id,
    holdId: runtime.clock.randomId(),
    owner: ownerOf(scope, settings),
    process: runtime.process,
    claimMs: Math.min(runtime.settings.claimMs, settings.leaseMs),
    unanswered: 0,
  };
  const startedAt = runtime.events.has('granted') ? runtime.clock.now() : undefined;
  return new Promise((resolve, reject) => {
    const asker: Asker = {
      granted: (granted) => resolve(hold(scope, settings, key, request, granted, startedAt)),
      refused: (freeInMs) => {
        if (caller === 'try') {
          resolve(undefined as C extends 'try' ? undefined : never);
          return;
        }
        runtime.events.emit('timeout', { key, owner: request.owner, holdId: request.holdId, waitedMs: 0 });
        reject(new LockTimeoutError({ key, waitedMs: 0, retryAfterMs: freeInMs }));
      },
      failed: reject,
    };
    const waitMs = caller === 'try' ? 0 : settings.waitMs;
    runtime.waiting.acquire({ key, request, leaseMs: settings.leaseMs, waitMs, interruption, asker });
  });
}

/** What the store granted, as the first hold of its scope. */
function hold(
  scope: Scope,
  settings: AcquireSettings & AcquireTarget,
  key: string,
  request: HoldRequest,
  granted: Granted,
  startedAt: Instant | undefined,
): ScopedHold {
  const { clock, events, keeper } = scope.runtime;
  const grant = new Grant(clock, key, request, settings.owner, settings, granted);
  grant.addHold(settings.leaseMs, settings.renew);
  const first = addHold(scope, grant, settings);
  keeper.keep(grant);
  if (startedAt !== undefined) {
    events.emit('granted', { ...grant.event, fence: grant.fence, waitedMs: elapsedMs(clock.now(), startedAt) });
  }
  return first;
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
