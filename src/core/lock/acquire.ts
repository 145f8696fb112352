import { type Instant, lastedMs } from '../base/clock.ts';
import { Deferred } from '../base/deferred.ts';
import { type MaybePromise, settle } from '../base/maybe-promise.ts';
import type { Granted } from '../client/granted.ts';
import { Grant } from '../lease/grant.ts';
import { hasCode, LockConfigError, LocksClosedError, LockTimeoutError } from '../model/errors.ts';
import type { LockName } from '../model/key.ts';
import { type AcquireSettings, type AcquireTarget, acquireSettings, assertGrantable } from '../model/options.ts';
import type { HoldRequest, StoreCapabilities } from '../model/store.ts';
import type { AcquireOptions, OwnerKind } from '../model/types.ts';
import { ScopeCancellation } from '../scope/cancellation.ts';
import { ScopedHold } from '../scope/hold.ts';
import { assertEnterable, lossOf, reenter } from '../scope/reentry.ts';
import type { Scope } from '../scope/scope.ts';
import { ScopedController } from '../scope/scoped-controller.ts';
import type { AcquireCallbacks } from '../wait/task.ts';

/** Which API made the call. A guard stops waiting when its client disconnects. */
export type Caller = 'code' | 'guard';

/**
 * Acquires for a scope: by re-entry, without a store call, if the scope holds the key already; else from the store. The
 * options were checked. Fails with `LockTimeoutError` if the key is not free in time. Returns or throws synchronously if the
 * store returns no promise. `firstCallTimeoutMs` limits the first call to the store, if that is less than its own deadline.
 */
export function acquire(
  scope: Scope,
  name: LockName,
  options: AcquireOptions,
  caller: Caller,
  firstCallTimeoutMs?: number,
): MaybePromise<ScopedHold> {
  const { runtime } = scope;
  const asked = acquireSettings(runtime.settings, options);
  assertGrantable(asked.leaseMs, runtime.client.capabilities);
  const { key } = name;
  const cancellation = cancellationOf(scope, key, asked, caller);
  const entered = asked.owner === 'hold' ? undefined : scope.reentrantGrant(name.id, asked.mode);
  if (entered !== undefined) {
    assertEnterable(scope, entered, asked);
    if (asked.mode === 'read' || entered.request.mode === 'write') {
      return reenter(scope, entered, asked);
    }
  }
  // A reader that becomes the writer: a hold of its own, of the same owner.
  const settings = entered === undefined ? asked : { ...asked, owner: entered.ownerKind };
  if (settings.mode === 'read') assertModes(runtime.client.capabilities, key);
  if (runtime.acquires.isClosed) throw new LocksClosedError({ key });

  const request = requestOf(scope, name, settings);
  const startedAt = runtime.events.has('granted') ? runtime.clock.now() : undefined;
  const result = new Deferred<ScopedHold>(false);
  const callbacks: AcquireCallbacks = {
    onGranted: (granted) => {
      const first = firstHold(scope, settings, key, request, granted, startedAt);
      const lost = entered && lossOf(scope, entered);
      if (lost === undefined) result.resolve(first);
      else {
        // Others may have written since it read.
        first.startRelease();
        result.reject(lost);
      }
    },
    onRefused: (retryAfterMs) => {
      runtime.events.emit('refused', { key, owner: request.owner, holdId: request.holdId, reason: 'busy' });
      result.reject(new LockTimeoutError({ key, waitedMs: 0, retryAfterMs }));
    },
    onFailed: (error) => result.reject(error),
  };
  const { leaseMs, waitMs } = settings;
  runtime.acquires.acquire({
    key,
    request,
    leaseMs,
    waitMs,
    firstCallTimeoutMs,
    work: scope,
    cancellation,
    callbacks,
  });
  return result.now;
}

/** As `acquire` without a wait, but returns undefined if the key is not free. */
export function tryAcquire(
  scope: Scope,
  name: LockName,
  options: AcquireOptions,
  caller: Caller,
  firstCallTimeoutMs?: number,
): MaybePromise<ScopedHold | undefined> {
  return settle<ScopedHold, ScopedHold | undefined>(
    () => acquire(scope, name, { ...options, waitMs: 0 }, caller, firstCallTimeoutMs),
    (hold) => hold,
    (error) => {
      // A deadlock here is a reader beside others that asks to write: the key is not free to write.
      if (hasCode(error, 'ERR_LOCK_TIMEOUT') || hasCode(error, 'ERR_LOCK_DEADLOCK')) return undefined;
      throw error;
    },
  );
}

/** What may end an acquire before its time. If something has ended it already, emits that and throws: nothing is sent. */
function cancellationOf(
  scope: Scope,
  key: string,
  { owner, signal }: AcquireTarget,
  caller: Caller,
): ScopeCancellation {
  const cancellation = new ScopeCancellation(key, scope, signal, caller === 'guard');
  const { error } = cancellation;
  if (error === undefined) return cancellation;
  const { clock, events } = scope.runtime;
  events.emit('aborted', { key, owner: ownerOf(scope, owner), holdId: clock.randomId(), waitedMs: 0 });
  throw error;
}

function requestOf(scope: Scope, { id }: LockName, settings: AcquireSettings & AcquireTarget): HoldRequest {
  const { clock, process, settings: defaults } = scope.runtime;
  return {
    id,
    holdId: clock.randomId(),
    owner: ownerOf(scope, settings.owner),
    process,
    claimMs: Math.min(defaults.claimMs, settings.leaseMs),
    mode: settings.mode,
    priority: settings.priority,
  };
}

/** The first hold of a scope on what the store granted. */
function firstHold(
  scope: Scope,
  settings: AcquireSettings & AcquireTarget,
  key: string,
  request: HoldRequest,
  granted: Granted,
  startedAt: Instant | undefined,
): ScopedHold {
  const { clock, events, grants } = scope.runtime;
  const createController = (): ScopedController => new ScopedController(scope);
  const grant = new Grant({ clock, createController, key, request, settings, granted });
  grant.addHold(settings.leaseMs, settings.renew);
  const first = new ScopedHold(grant, scope, settings.renew);
  scope.add(first);
  grants.add(grant);
  if (startedAt !== undefined) {
    events.emit('granted', { ...grant.event, fence: grant.fence, waitedMs: lastedMs(clock.now(), startedAt) });
  }
  const { otherHolds = 0 } = granted;
  if (otherHolds > 0) events.emit('entered', { ...grant.event, fence: grant.fence, otherHolds });
  return first;
}

function assertModes(capabilities: StoreCapabilities, key: string): void {
  if (capabilities.modes) return;
  throw new LockConfigError(
    "Expected a store that has modes for `mode: 'read'`, got one that lacks them (`capabilities.modes`): all its holds are to write",
    { key },
  );
}

function ownerOf(scope: Scope, owner: OwnerKind): string {
  if (owner === 'trace') return scope.owner;
  return owner === 'request' ? scope.requestOwner : scope.runtime.clock.randomId();
}
