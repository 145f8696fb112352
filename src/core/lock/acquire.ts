import { type Instant, wholeMs } from '../base/clock.ts';
import { Deferred } from '../base/deferred.ts';
import { type MaybePromise, settle } from '../base/maybe-promise.ts';
import type { Granted } from '../client/granted.ts';
import { Grant } from '../lease/grant.ts';
import { hasCode, LockConfigError, LocksClosedError, LockTimeoutError } from '../model/errors.ts';
import { type EventSource, eventOf } from '../model/events.ts';
import type { LockName } from '../model/key.ts';
import { type AcquireSettings, type AcquireTarget, acquireSettings, assertGrantable } from '../model/options.ts';
import type { HoldRequest, StoreCapabilities } from '../model/store.ts';
import type { AcquireOptions, OwnerKind } from '../model/types.ts';
import type { Locks } from '../runtime/locks.ts';
import { ScopeCancellation } from '../scope/cancellation.ts';
import { ScopedHold } from '../scope/hold.ts';
import { assertEnterable, assertNotOwnGuards, lossOf, reenter } from '../scope/reentry.ts';
import type { Scope } from '../scope/scope.ts';
import { ScopedController } from '../scope/scoped-controller.ts';
import type { AcquireCallbacks, Cancellation } from '../wait/task.ts';
import { type AcquireCaller, type AcquireMessage, acquireChannel } from './acquire-channel.ts';
import { emitFailure, outcomeOf } from './outcome.ts';

/** Which API made the call. A guard stops waiting when its client disconnects. */
export type Caller = 'code' | 'guard';

/** What else an acquire needs to know of its call. */
export interface AcquireDetails {
  /** How traces name the caller. Default: `caller`. */
  readonly as?: AcquireCaller | undefined;
  /** Limits the first call to the store, if that is less than its own deadline. */
  readonly firstCallTimeoutMs?: number | undefined;
}

/**
 * Acquires for a scope: by re-entry, without a store call, if the scope holds the key already; else from the store. The
 * options were checked. Fails with `LockTimeoutError` if the key is not free in time. Returns or throws synchronously if the
 * store returns no promise.
 */
export function acquire(
  scope: Scope,
  name: LockName,
  options: AcquireOptions,
  caller: Caller,
  { as = caller, firstCallTimeoutMs }: AcquireDetails = {},
): MaybePromise<ScopedHold> {
  const { runtime } = scope;
  const asked = acquireSettings(runtime.settings, options);
  assertGrantable(asked.leaseMs, runtime.client.capabilities);
  const cancellation = new ScopeCancellation(name.key, scope, asked.signal, caller === 'guard');
  const entered = asked.owner === 'hold' ? undefined : scope.reentrantGrant(name.id, asked.mode);
  try {
    if (cancellation.error !== undefined) throw cancellation.error;
    if (entered !== undefined) assertEnterable(scope, entered, asked);
    if (entered !== undefined && (asked.mode === 'read' || entered.request.mode === 'write')) {
      return reenter(scope, entered, asked);
    }
    if (entered === undefined && asked.waitMs > 0) assertNotOwnGuards(scope, name, asked);
    if (asked.mode === 'read') assertModes(runtime.client.capabilities, name.key);
    if (runtime.acquires.isClosed) throw new LocksClosedError({ key: name.key });
  } catch (error) {
    emitFailure(runtime, sourceOf(scope, name, asked), runtime.clock.now(), error);
    throw error;
  }
  // A reader that becomes the writer: a hold of its own, of the same owner.
  const settings = entered === undefined ? asked : { ...asked, owner: entered.ownerKind };
  const acquisition = { scope, name, settings, cancellation, joined: entered, firstCallTimeoutMs };
  return acquireChannel.hasSubscribers ? acquireTraced(acquisition, as) : acquireFromStore(acquisition);
}

/** One acquire that asks the store. */
interface Acquisition {
  readonly scope: Scope;
  readonly name: LockName;
  readonly settings: AcquireSettings & AcquireTarget;
  readonly cancellation: Cancellation;
  /** The read hold that the acquire joins as a writer. */
  readonly joined: Grant | undefined;
  readonly firstCallTimeoutMs: number | undefined;
}

function acquireTraced(acquisition: Acquisition, caller: AcquireCaller): Promise<ScopedHold> {
  const { scope, name, settings } = acquisition;
  const { locks } = scope.runtime;
  const source = sourceOf(scope, name, settings);
  const message: AcquireMessage = { locks: locks as Locks, ...eventOf(source), caller, waitMs: settings.waitMs };
  return acquireChannel.tracePromise(async () => acquireFromStore(acquisition, source, message), message);
}

function acquireFromStore(
  { scope, name, settings, cancellation, joined, firstCallTimeoutMs }: Acquisition,
  source: AcquireSource = sourceOf(scope, name, settings),
  message?: AcquireMessage,
): MaybePromise<ScopedHold> {
  const { runtime } = scope;
  const startedAt = runtime.clock.now();
  const result = new Deferred<ScopedHold>(false);
  const fail = (error: Error, wasBusy?: boolean): void => {
    if (message !== undefined) {
      message.outcome = wasBusy ? 'refused' : outcomeOf(error);
      message.waitedMs = wholeMs(runtime.clock.now(), startedAt);
    }
    result.reject(error);
    emitFailure(runtime, source, startedAt, error, wasBusy);
  };
  const callbacks: AcquireCallbacks = {
    onGranted: (granted) => {
      const first = firstHold(scope, settings, name, source.request, granted, startedAt);
      if (message !== undefined) {
        message.outcome = 'granted';
        message.fence = granted.fence;
        message.waitedMs = wholeMs(runtime.clock.now(), startedAt);
      }
      const lost = joined && lossOf(scope, joined);
      if (lost === undefined) result.resolve(first);
      else {
        // Others may have written since it read.
        first.startRelease();
        result.reject(lost);
      }
    },
    onRefused: (retryAfterMs) => fail(new LockTimeoutError({ key: name.key, waitedMs: 0, retryAfterMs }), true),
    onFailed: fail,
  };
  const { leaseMs, waitMs } = settings;
  const { key, category, traceId, request } = source;
  // A literal, not a spread: ten thousand of these may wait.
  runtime.acquires.acquire({
    key,
    category,
    traceId,
    request,
    leaseMs,
    waitMs,
    startedAt,
    firstCallTimeoutMs,
    work: scope,
    cancellation,
    callbacks,
    onQueued:
      message &&
      (() => {
        message.wasQueued = true;
      }),
  });
  return result.now;
}

/** As `acquire` without a wait, but returns undefined if the key is not free. */
export function tryAcquire(
  scope: Scope,
  name: LockName,
  options: AcquireOptions,
  caller: Caller,
  details: AcquireDetails = { as: 'try' },
): MaybePromise<ScopedHold | undefined> {
  return settle<ScopedHold, ScopedHold | undefined>(
    () => acquire(scope, name, { ...options, waitMs: 0 }, caller, details),
    (hold) => hold,
    (error) => {
      // A deadlock here is a reader beside others that asks to write: the key is not free to write.
      if (hasCode(error, 'ERR_LOCK_TIMEOUT') || hasCode(error, 'ERR_LOCK_DEADLOCK')) return undefined;
      throw error;
    },
  );
}

/** The parts of one acquire that its calls and its events need. */
type AcquireSource = EventSource & { readonly request: HoldRequest };

function sourceOf(scope: Scope, name: LockName, settings: AcquireSettings & AcquireTarget): AcquireSource {
  const { key, category } = name;
  return { key, category, traceId: scope.traceId, request: requestOf(scope, name, settings) };
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
  name: LockName,
  request: HoldRequest,
  granted: Granted,
  startedAt: Instant,
): ScopedHold {
  const { clock, events, grants } = scope.runtime;
  const createController = (): ScopedController => new ScopedController(scope);
  const { traceId } = scope;
  const grant = new Grant({ clock, createController, name, traceId, request, settings, granted });
  grant.addHold(settings.leaseMs, settings.renew);
  const first = new ScopedHold(grant, scope, settings.renew);
  scope.add(first);
  grants.add(grant);
  if (events.has('granted')) {
    const { key, category, fence } = grant;
    const { mode, owner, holdId } = request;
    const waitedMs = wholeMs(clock.now(), startedAt);
    events.emit('granted', { key, category, mode, owner, traceId, holdId, fence, waitedMs });
  }
  const { otherHolds = 0 } = granted;
  if (otherHolds > 0) events.emit('entered', { ...eventOf(grant), fence: grant.fence, otherHolds });
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
