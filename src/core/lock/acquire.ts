import { type Instant, lastedMs } from '../base/clock.ts';
import { Deferred } from '../base/deferred.ts';
import type { MaybePromise } from '../base/maybe-promise.ts';
import type { Granted } from '../client/granted.ts';
import { Grant } from '../lease/grant.ts';
import { hasCode } from '../model/error-code.ts';
import {
  LockConfigError,
  LockLimitError,
  type LockLostError,
  LocksClosedError,
  LockTimeoutError,
} from '../model/errors.ts';
import type { LockName } from '../model/key.ts';
import { type AcquireSettings, type AcquireTarget, acquireSettings, assertGrantable } from '../model/options.ts';
import type { HoldRequest, LockStore } from '../model/store.ts';
import type { AcquireOptions, OwnerKind } from '../model/types.ts';
import { Cancellation } from '../scope/cancellation.ts';
import { ScopedHold } from '../scope/hold.ts';
import type { Scope } from '../scope/scope.ts';
import type { AcquireCallbacks } from '../wait/local-queue.ts';

/** Who asks: a guard gives up when its client leaves, a try does not wait. */
type Caller = 'code' | 'guard' | 'try';

type TryResult<C extends Caller> = C extends 'try' ? undefined : never;

/**
 * Acquires for a scope: by re-entry, without a store call, where the scope holds the key already; else from the store.
 * The options were checked. A try answers undefined where the key is not free; everybody else fails with
 * `LockTimeoutError`. What is known at once, of a free key in a store that answers at once for example, is answered or
 * thrown in the same turn. `askMs` is how long the first call to the store may take, where that is less than its own
 * deadline.
 */
export function acquire<C extends Caller>(
  scope: Scope,
  name: LockName,
  options: AcquireOptions,
  caller: C,
  askMs?: number,
): MaybePromise<ScopedHold | TryResult<C>> {
  const { runtime } = scope;
  const asked = acquireSettings(runtime.settings, options);
  assertGrantable(asked.leaseMs, runtime.store);
  const { key } = name;
  const interruption = interruptible(scope, key, options, caller);
  const entered = asked.owner === 'hold' ? undefined : scope.reentrantGrant(name.id, asked.mode);
  if (entered !== undefined) {
    assertEnterable(scope, entered, asked);
    if (asked.mode === 'read' || entered.request.mode === 'write') {
      return reenter(scope, entered, asked);
    }
  }
  // A reader that becomes the writer: a hold of its own, of the same owner.
  const settings = entered === undefined ? asked : { ...asked, owner: entered.ownerKind };
  if (settings.mode === 'read') assertModes(runtime.store, key);
  if (runtime.waiting.isClosed) throw new LocksClosedError({ key });

  const request = {
    id: name.id,
    holdId: runtime.clock.randomId(),
    owner: ownerOf(scope, settings.owner),
    process: runtime.process,
    claimMs: Math.min(runtime.settings.claimMs, settings.leaseMs),
    mode: settings.mode,
    priority: settings.priority,
    unanswered: 0,
  };
  const startedAt = runtime.events.has('granted') ? runtime.clock.now() : undefined;
  const outcome = new Deferred<ScopedHold | TryResult<C>>(false);
  const asker: AcquireCallbacks = {
    granted: (granted) => {
      const first = hold(scope, settings, key, request, granted, startedAt);
      const lost = entered && lossOf(scope, entered);
      if (lost === undefined) outcome.resolve(first);
      else {
        // Others may have written since it read.
        first.giveBack();
        outcome.reject(lost);
      }
    },
    refused: (retryAfterMs) => {
      if (caller === 'try') {
        outcome.resolve(undefined as TryResult<C>);
        return;
      }
      runtime.events.emit('timeout', { key, owner: request.owner, holdId: request.holdId, waitedMs: 0 });
      outcome.reject(new LockTimeoutError({ key, waitedMs: 0, retryAfterMs }));
    },
    // A try does not wait, so not for itself either: the key is not free to write.
    failed: (error) => {
      if (caller === 'try' && hasCode(error, 'ERR_LOCK_DEADLOCK')) outcome.resolve(undefined as TryResult<C>);
      else outcome.reject(error);
    },
  };
  const waitMs = caller === 'try' ? 0 : settings.waitMs;
  runtime.waiting.acquire({ key, request, leaseMs: settings.leaseMs, waitMs, askMs, work: scope, interruption, asker });
  return outcome.soon;
}

/** What may end an acquire before its time. Where something has already, tells of it and throws: nothing is asked. */
export function interruptible(
  scope: Scope,
  key: string,
  { owner = 'trace', signal }: AcquireOptions,
  caller: Caller,
): Cancellation {
  const interruption = new Cancellation(key, scope, signal, caller === 'guard');
  const { error } = interruption;
  if (error === undefined) return interruption;
  const { clock, events } = scope.runtime;
  events.emit('aborted', { key, owner: ownerOf(scope, owner), holdId: clock.randomId(), waitedMs: 0 });
  throw error;
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
  const grant = new Grant(scope, key, request, settings, granted);
  grant.addHold(settings.leaseMs, settings.renew);
  const first = addHold(scope, grant, settings);
  keeper.keep(grant);
  if (startedAt !== undefined) {
    events.emit('granted', { ...grant.event, fence: grant.fence, waitedMs: lastedMs(clock.now(), startedAt) });
  }
  const { otherHolds = 0 } = granted;
  if (otherHolds > 0) events.emit('entered', { ...grant.event, fence: grant.fence, otherHolds });
  return first;
}

/** Nothing is built on a hold that was lost, nor on one of another owner. */
function assertEnterable(scope: Scope, grant: Grant, settings: AcquireTarget): void {
  const lost = lossOf(scope, grant);
  if (lost !== undefined) throw lost;
  if (settings.owner === 'request' && grant.ownerKind === 'trace') {
    throw new LockConfigError(
      "Expected a key that this request holds for its trace to be re-entered with `owner: 'trace'`, got `'request'`: give the outermost acquire `owner: 'request'`",
      { key: grant.key },
    );
  }
}

/** Why a grant is lost, if it is: also where its lease has ended and nobody has said so yet. */
function lossOf({ runtime }: Scope, grant: Grant): LockLostError | undefined {
  if (!grant.isHeld) runtime.keeper.lose(grant, 'The lock was lost: its lease ended before it could be renewed');
  return grant.lostError;
}

function reenter(scope: Scope, grant: Grant, settings: AcquireSettings): ScopedHold {
  const { runtime } = scope;
  if (grant.holdCount >= runtime.settings.maxReentry) {
    throw new LockLimitError(`The lock was re-entered ${grant.holdCount} times without a release`, { key: grant.key });
  }
  runtime.keeper.reenter(grant, settings.leaseMs, settings.renew);
  return addHold(scope, grant, settings);
}

function addHold(scope: Scope, grant: Grant, settings: AcquireSettings): ScopedHold {
  const hold = new ScopedHold(grant, scope, settings.renew);
  scope.add(hold);
  return hold;
}

function assertModes(store: LockStore, key: string): void {
  if (store.capabilities.modes) return;
  throw new LockConfigError(
    "Expected a store that has modes for `mode: 'read'`, got one that lacks them (`capabilities.modes`): all its holds are to write",
    { key },
  );
}

function ownerOf(scope: Scope, owner: OwnerKind): string {
  if (owner === 'trace') return scope.owner;
  return owner === 'request' ? scope.requestOwner : scope.runtime.clock.randomId();
}
