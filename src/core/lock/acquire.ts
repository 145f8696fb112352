import { CallSite } from '../base/call-site.ts';
import { type Instant, wholeMs } from '../base/clock.ts';
import { Deferred } from '../base/deferred.ts';
import { type MaybePromise, settle } from '../base/maybe-promise.ts';
import type { Granted } from '../client/granted.ts';
import type { Grant } from '../lease/grant.ts';
import { isLockError, LockConfigError, LocksClosedError, LockTimeoutError, setCallSite } from '../model/errors.ts';
import type { LockName } from '../model/key.ts';
import type { HeldBy, LockHolder } from '../model/lock-holder.ts';
import { type AcquireSettings, type AcquireTarget, acquireSettings, assertGrantable } from '../model/options.ts';
import { branchOf } from '../model/owner.ts';
import type { HoldRequest, StoreCapabilities } from '../model/store.ts';
import type { AcquireOptions, HoldMode } from '../model/types.ts';
import type { Locks } from '../runtime/locks.ts';
import { cancellationError, ScopeCancellation } from '../scope/cancellation.ts';
import type { Branch } from '../scope/scope.ts';
import type { Entry } from '../scope/scope-holds.ts';
import { warnOfManyKeys, warnOfOverlap } from '../scope/warnings.ts';
import type { AcquireTask, Cancellation } from '../wait/task.ts';
import { type AcquireCaller, type AcquireMessage, acquireChannel, type Failure } from './acquire-channel.ts';
import { branchObstacle, cycleError } from './branch-obstacle.ts';
import { firstHold, type ScopedHold } from './hold.ts';
import { isNotFree, tellFailed, tellGranted } from './outcome.ts';
import { assertEnterable, assertNotOwnGuards, heldBy, lossOf, reenter } from './reentry.ts';

/** Which API made the call. A guard stops waiting when its client disconnects. */
export type Caller = 'code' | 'guard';

/** What else an acquire needs to know of its call. */
export interface AcquireDetails {
  /** How traces name the caller. Default: `caller`. */
  readonly as?: AcquireCaller | undefined;
  /** Limits the first call to the store, if that is less than its own deadline. */
  readonly firstCallTimeoutMs?: number | undefined;
  /** Where the application made the call, if its code did. Default: the stack of this call. */
  readonly callSite?: CallSite | undefined;
  /** Whether a key that is not free is no end: a batch that tries several at once waits for that key then. */
  readonly isProbe?: boolean | undefined;
}

/**
 * Acquires for a scope: by re-entry, without a store call, if the scope holds the key already; else from the store. The
 * options were checked. Fails with `LockTimeoutError` if the key is not free in time. Re-entry returns without a promise: with
 * an async context, promises are most of what it costs.
 */
export function acquire(
  branch: Branch,
  name: LockName,
  options: AcquireOptions,
  caller: Caller,
  details?: AcquireDetails,
): MaybePromise<ScopedHold> {
  const { scope } = branch;
  const { runtime } = scope;
  const asked = acquireSettings(runtime.settings, options);
  assertGrantable(asked.leaseMs, runtime.client.capabilities);
  const isForGuard = caller === 'guard';
  const entry = asked.reentrant === false ? nothing : scope.holds.entry(name.id, branch, asked.mode);
  const entered = entry.grant;
  try {
    const cancelled = cancellationError(name, scope, asked.signal, isForGuard);
    if (cancelled !== undefined) throw cancelled;
    if (entered !== undefined) assertEnterable(scope, entered, options);
    if (entered !== undefined && isLocal(branch, entry, entered, asked.mode)) return reenter(branch, entered, asked);
    if (entered === undefined && asked.waitMs > 0) assertNotOwnGuards(scope, name, asked);
    const cycle = asked.reentrant !== false && asked.waitMs > 0 ? cycleError(branch, name, asked.mode) : undefined;
    if (cycle !== undefined) throw cycle;
    assertMode(runtime.client.capabilities, asked.mode, name);
    if (runtime.acquires.isClosed) throw new LocksClosedError(name);
  } catch (error) {
    if (!isForGuard) setCallSite(error, details?.callSite ?? new CallSite(acquire));
    // A mistake in the options is no outcome of an acquire.
    if (!isLockError(error) || error.code !== 'ERR_LOCK_CONFIG') {
      tellFailed(runtime.events, new Acquisition(branch, name, asked, isForGuard), error);
    }
    throw error;
  }
  // Beneath a grant of the scope, with a hold of its own: a reader that becomes the writer, or a branch beside others.
  const settings = entered === undefined ? asked : { ...asked, reentrant: entered.reentrant };
  const acquisition = new Acquisition(branch, name, settings, isForGuard, entered, details);
  if (!isForGuard) acquisition.callSite = details?.callSite ?? new CallSite(acquire);
  if (acquireChannel.hasSubscribers) return acquireTraced(acquisition, details?.as ?? caller);
  acquisition.begin();
  return acquisition.result.promise;
}

const nothing: Entry = { grant: undefined, blocker: undefined, isBeside: false };

/**
 * Whether a branch enters a grant of its scope without a store call. If others may hold the key below a branch, the store must
 * know of each branch that has it; and a branch takes a permit of its own beside others.
 */
function isLocal(branch: Branch, { blocker, isBeside }: Entry, grant: Grant, mode: HoldMode): boolean {
  if (blocker !== undefined || isBeside || (mode === 'write' && grant.request.mode !== 'write')) return false;
  const isAlone = !branch.scope.isShared && mode !== 'permit';
  return isAlone || grant.request.owner === branch.ownerAs(grant.reentrant);
}

function acquireTraced(acquisition: Acquisition, caller: AcquireCaller): Promise<ScopedHold> {
  const { key, category, traceId, waitMs, request, work } = acquisition;
  const { mode, holdId } = request;
  const branch = branchOf(request.owner);
  const locks = work.scope.runtime.locks as Locks;
  const message: AcquireMessage = { locks, key, category, mode, traceId, branch, holdId, caller, waitMs };
  acquisition.message = message;
  return acquireChannel.tracePromise(async () => {
    const call = (): void => acquisition.begin();
    if (message.runStoreCall === undefined) call();
    else message.runStoreCall(call);
    return acquisition.result.promise;
  }, message);
}

/** One acquire that asks the store. Ten thousand of these may wait: one object each, without closures. */
class Acquisition implements AcquireTask {
  readonly work: Branch;
  readonly name: LockName;
  readonly settings: AcquireSettings & AcquireTarget;
  readonly cancellation: Cancellation;
  /** The grant of the scope that it is nested in, or joins as a writer. */
  readonly joined: Grant | undefined;
  readonly firstCallTimeoutMs: number | undefined;
  readonly isProbe: boolean;
  readonly request: HoldRequest;
  readonly startedAt: Instant;
  readonly result: Deferred<ScopedHold> = new Deferred<ScopedHold>(false);
  /** What subscribers of the tracing channel are given. */
  message: AcquireMessage | undefined;
  callSite: CallSite | undefined;

  constructor(
    branch: Branch,
    name: LockName,
    settings: AcquireSettings & AcquireTarget,
    isForGuard: boolean,
    joined?: Grant,
    details?: AcquireDetails,
  ) {
    const { scope } = branch;
    this.work = branch;
    this.name = name;
    this.settings = settings;
    this.cancellation = new ScopeCancellation(name, scope, settings.signal, isForGuard);
    this.joined = joined;
    this.firstCallTimeoutMs = details?.firstCallTimeoutMs;
    this.isProbe = details?.isProbe === true;
    this.request = requestOf(branch, name, settings);
    this.startedAt = scope.runtime.clock.now();
    this.message = undefined;
    this.callSite = undefined;
  }

  get key(): string {
    return this.name.key;
  }

  get category(): string | undefined {
    return this.name.category;
  }

  get traceId(): string {
    return this.work.traceId;
  }

  get leaseMs(): number {
    return this.settings.leaseMs;
  }

  get waitMs(): number {
    return this.settings.waitMs;
  }

  get waitedMs(): number {
    return wholeMs(this.work.scope.runtime.clock.now(), this.startedAt);
  }

  /** Asks the store, or waits for the branches of its scope that have the key beneath the same grant. */
  begin(): void {
    const { request, joined, settings, work } = this;
    const { holds, runtime } = work.scope;
    const isReentrant = settings.reentrant !== false;
    // Branches that come meanwhile must not enter without the store.
    const obstacle = isReentrant
      ? branchObstacle(work, this.name, request.mode, joined, () => holds.ask(this))
      : undefined;
    if (obstacle === undefined) holds.ask(this);
    runtime.acquires.acquire(this, obstacle);
  }

  heldBy(holder: LockHolder | undefined): HeldBy | undefined {
    return heldBy(this.work, this.request, this.settings, holder);
  }

  onQueued(): void {
    if (this.message !== undefined) this.message.wasQueued = true;
  }

  onGranted(granted: Granted): void {
    const { scope } = this.work;
    const { equalHolds = 0 } = granted;
    const isOverlap = scope.isBare && equalHolds > scope.holds.countBeside(this.request);
    if (isOverlap) warnOfOverlap();
    const first = firstHold(this.work, this, granted);
    this.work.scope.holds.answered(this);
    // A batch limits its first call.
    if (this.firstCallTimeoutMs === undefined) warnOfManyKeys(scope.holds.all.length);
    tellGranted(scope.runtime.events, this, granted, isOverlap);
    const { joined } = this;
    // An ancestor may have released it meanwhile: that is no loss.
    const lost = joined?.isOpen ? lossOf(scope, joined) : joined?.lostError;
    if (lost === undefined) this.result.resolve(first);
    else {
      // Others may have written since.
      first.startRelease();
      setCallSite(lost, this.callSite);
      this.result.reject(lost);
    }
  }

  onRefused(retryAfterMs: number): void {
    this.#fail(new LockTimeoutError({ key: this.key, category: this.category, waitedMs: 0, retryAfterMs }), 'refused');
  }

  onFailed(error: Error): void {
    this.#fail(error);
  }

  #fail(error: Error, outcome?: Failure): void {
    this.work.scope.holds.answered(this);
    setCallSite(error, this.callSite);
    this.result.reject(error);
    tellFailed(this.work.scope.runtime.events, this, error, outcome);
  }
}

/** As `acquire` without a wait, but returns undefined if the key is not free. */
export function tryAcquire(
  branch: Branch,
  name: LockName,
  options: AcquireOptions,
  caller: Caller,
  details: AcquireDetails = { as: 'try' },
): MaybePromise<ScopedHold | undefined> {
  return settle<ScopedHold, ScopedHold | undefined>(
    () => acquire(branch, name, { ...options, waitMs: 0 }, caller, details),
    (hold) => hold,
    (error) => {
      if (isNotFree(error)) return undefined;
      throw error;
    },
  );
}

/** A new hold id, for an owner as the settings say. */
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

/** Throws for a mode that the store lacks. */
function assertMode({ modes, permits = false }: StoreCapabilities, mode: HoldMode, name: LockName): void {
  if (mode === 'read' && !modes) {
    throw new LockConfigError(
      "Expected a store that has modes for `mode: 'read'`, got one that lacks them (`capabilities.modes`): all its holds are to write",
      name,
    );
  }
  if (mode === 'permit' && !permits) {
    throw new LockConfigError(
      'Expected a store whose keys can have permits (`capabilities.permits`), got one that lacks them: take another store for this key, or one lock for each of some keys',
      name,
    );
  }
}
