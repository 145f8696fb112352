import type { CallSite } from '../base/call-site.ts';
import { type Instant, wholeMs } from '../base/clock.ts';
import { Deferred } from '../base/deferred.ts';
import { type MaybePromise, settle } from '../base/maybe-promise.ts';
import type { Granted } from '../client/granted.ts';
import type { Grant } from '../lease/grant.ts';
import { assertGrantable, assertMode } from '../model/capabilities.ts';
import { setCallSite } from '../model/errors/at-call.ts';
import { hasCode } from '../model/errors/by-code.ts';
import type { HeldBy, LockHolder } from '../model/errors/lock-holder.ts';
import { LocksClosedError, LockTimeoutError } from '../model/errors/refusals.ts';
import type { LockName } from '../model/key.ts';
import { type AcquireSettings, acquireSettings } from '../model/options.ts';
import { branchOf } from '../model/owner.ts';
import type { HoldRequest } from '../model/store.ts';
import type { AcquireOptions } from '../model/types.ts';
import type { Locks } from '../runtime/locks.ts';
import { cancellationError, ScopeCancellation } from '../scope/cancellation.ts';
import { assertNotOwnGuards, heldBy, isBeneathHold } from '../scope/held-around.ts';
import type { Branch } from '../scope/scope.ts';
import type { Entry } from '../scope/scope-holds.ts';
import { warnOfManyKeys, warnOfOverlap } from '../scope/warnings.ts';
import type { AcquireTask, Cancellation } from '../wait/task.ts';
import { type AcquireCaller, type AcquireMessage, acquireChannel, type Failure, traced } from './acquire-channel.ts';
import { branchObstacle, cycleError, isBlocked } from './branch-obstacle.ts';
import { firstHold, type ScopedHold } from './hold.ts';
import { isNotFree, reportFailed, reportGranted, reportReentered } from './outcome.ts';
import { assertEnterable, isLocal, leftTo, reenter } from './reentry.ts';

/** Which API made the call. A guard stops waiting when its client disconnects. */
export type Caller = 'code' | 'guard';

/** Details of the call that an acquire is for. */
export interface AcquireDetails {
  /** How traces name the caller. Default: `caller`. */
  readonly as?: AcquireCaller | undefined;
  /** How long after its start it gives up at the latest, unless the store has replied by then. */
  readonly firstCallTimeoutMs?: number | undefined;
  /** Where the application made the call, if its code did. Default: the stack of this call. */
  readonly callSite?: CallSite | undefined;
  /** Whether the caller goes on if the key is not free: a batch that tries several keys waits for that key then. */
  readonly isProbe?: boolean | undefined;
}

/**
 * Acquires for a scope: by re-entry, without a store call, if the scope holds the key already; otherwise from the store. The
 * options are checked already. Fails with `LockTimeoutError` if the key is not free in time. Re-entry returns without a promise:
 * with an async context, promises are most of its cost.
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
  const requested = acquireSettings(runtime.settings, options);
  assertGrantable(requested.leaseMs, runtime.client.capabilities);
  const isForGuard = caller === 'guard';
  const entry = requested.reentrant === false ? noEntry : scope.holds.entry(name.id, branch, requested.mode);
  const entered = entry.grant;
  try {
    const cancelled = cancellationError(name, scope, requested.signal, isForGuard);
    if (cancelled !== undefined) throw cancelled;
    if (entered !== undefined) {
      assertEnterable(scope, entered, options);
      if (isLocal(branch, entry, entered, requested.mode)) return reenter(branch, entered, requested);
    } else if (requested.waitMs > 0) assertNotOwnGuards(scope, name, requested);
    const mayWaitForBranch = requested.reentrant !== false && requested.waitMs > 0;
    const cycle = mayWaitForBranch ? cycleError(branch, name, requested.mode) : undefined;
    if (cycle !== undefined) throw cycle;
    assertMode(runtime.client.capabilities, requested.mode, name);
    if (runtime.acquires.isClosed && !isBeneathHold(branch, name.id, requested.reentrant))
      throw new LocksClosedError(name);
  } catch (error) {
    const failed = new Acquisition(branch, name, requested, isForGuard, undefined, details);
    setCallSite(error, failed.callSite);
    // A mistake in the options is no outcome of an acquire.
    if (!hasCode(error, 'ERR_LOCK_CONFIG')) reportFailed(runtime.events, failed, error);
    throw error;
  }
  // A new hold beneath a grant of the scope: a reader that becomes the writer, or a branch alongside others.
  const settings = entered === undefined ? requested : { ...requested, reentrant: entered.reentrant };
  const acquisition = new Acquisition(branch, name, settings, isForGuard, entered, details);
  // A batch limits its first call.
  if (details?.firstCallTimeoutMs === undefined) warnOfManyKeys(scope.holds.all.length);
  if (acquireChannel.hasSubscribers) return acquireTraced(acquisition, details?.as ?? caller);
  acquisition.begin();
  return acquisition.result.promise;
}

const noEntry: Entry = { grant: undefined, blocker: undefined, isAlongside: false };

function acquireTraced(acquisition: Acquisition, caller: AcquireCaller): Promise<ScopedHold> {
  const { key, category, traceId, waitMs, request, work } = acquisition;
  const { mode, holdId } = request;
  const branch = branchOf(request.owner);
  const locks = work.scope.runtime.locks as Locks;
  const message: AcquireMessage = { locks, key, category, mode, traceId, branch, holdId, caller, waitMs };
  acquisition.message = message;
  return traced(message, acquisition);
}

/** One acquire from the store. Ten thousand of these may wait: one object each, without closures. */
class Acquisition implements AcquireTask {
  readonly work: Branch;
  readonly name: LockName;
  readonly settings: AcquireSettings;
  readonly cancellation: Cancellation;
  /** The grant of the scope that it is nested in, or joins as a writer. */
  readonly joined: Grant | undefined;
  readonly firstCallTimeoutMs: number | undefined;
  readonly isProbe: boolean;
  request: HoldRequest;
  readonly startedAt: Instant;
  readonly result: Deferred<ScopedHold> = new Deferred<ScopedHold>(false);
  /** Its message on the tracing channel. */
  message: AcquireMessage | undefined;
  /** Where the application made the call: no line of it calls a guard. */
  readonly callSite: CallSite | undefined;

  constructor(
    branch: Branch,
    name: LockName,
    settings: AcquireSettings,
    isForGuard: boolean,
    joined: Grant | undefined,
    details: AcquireDetails | undefined,
  ) {
    const { scope } = branch;
    this.work = branch;
    this.name = name;
    this.settings = settings;
    this.cancellation = new ScopeCancellation(name, scope, settings.signal, isForGuard);
    this.joined = joined;
    this.firstCallTimeoutMs = details?.firstCallTimeoutMs;
    this.isProbe = details?.isProbe === true;
    this.request = branch.requestFor(name, settings);
    this.startedAt = scope.runtime.clock.now();
    this.callSite = isForGuard ? undefined : (details?.callSite ?? scope.runtime.callSites.take(this.startedAt.monoMs));
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

  /** Asks the store, or first waits for the branches of its scope that have the key beneath the same grant. */
  begin(now: Instant = this.startedAt): void {
    const { name, request, joined, settings, work } = this;
    const { holds, runtime } = work.scope;
    // Branches that begin meanwhile must not enter without the store.
    const onFree = (): void => holds.addPending(this);
    const isReentrant = settings.reentrant !== false;
    const obstacle = isReentrant ? branchObstacle(work, name, request.mode, joined, onFree) : undefined;
    if (obstacle === undefined) onFree();
    runtime.acquires.acquire(this, now, obstacle);
    // It is still there if it begins again. Not before it waits: the others look again now, and must find it ahead of them.
    if (obstacle !== undefined) holds.removePending(this);
  }

  beginAgain(): void {
    this.request = this.work.requestFor(this.name, this.settings);
    this.begin(this.work.scope.runtime.clock.now());
  }

  heldBy(holder: LockHolder | undefined): HeldBy | undefined {
    return heldBy(this.work, this.request, this.settings, holder);
  }

  get isBeneathHold(): boolean {
    return isBeneathHold(this.work, this.request.id, this.settings.reentrant);
  }

  onQueued(): void {
    if (this.message !== undefined) this.message.wasQueued = true;
  }

  get isLeftOut(): boolean {
    return leftTo(this.work, this.request, this.settings) !== undefined;
  }

  listen(onChange: () => void): (() => void) | undefined {
    const { work, request, settings } = this;
    if (settings.reentrant === false || work.scope.runtime.client.capabilities.transfer) return undefined;
    return work.scope.holds.wait({ id: request.id, branch: work, from: work, mode: request.mode, check: onChange });
  }

  enter(): boolean {
    const { work, request, settings } = this;
    const left = leftTo(work, request, settings);
    if (left?.isFree !== true) return false;
    try {
      const hold = reenter(work, left.grant, settings);
      work.scope.holds.removePending(this);
      reportReentered(this, hold.fence);
      this.result.resolve(hold);
    } catch (error) {
      this.#fail(error as Error);
    }
    return true;
  }

  onGranted(granted: Granted): void {
    const { scope } = this.work;
    if (granted.otherHolds !== 0 && this.#isBlocked) {
      const { key, category, request, leaseMs } = this;
      scope.runtime.releases.releaseInBackground({ key, category, request, leaseMs });
      this.beginAgain();
      return;
    }
    const { equalHolds = 0 } = granted;
    const isOverlap = scope.isBare && equalHolds > scope.holds.countAlongside(this.request);
    if (isOverlap) warnOfOverlap();
    const first = firstHold(this.work, this, granted);
    scope.holds.removePending(this);
    reportGranted(scope.runtime.events, this, granted, isOverlap);
    const { joined } = this;
    // If an ancestor has released it meanwhile, that is no loss.
    const lost = joined?.isOpen ? scope.runtime.grants.lossOf(joined) : joined?.lostError;
    if (lost === undefined) this.result.resolve(first);
    else {
      // Others may have written since.
      first.startRelease();
      setCallSite(lost, this.callSite);
      this.result.reject(lost);
    }
  }

  /**
   * Whether it was granted alongside another branch that only the scope keeps apart: the store grants all waiters of a bare trace id
   * together, also of jobs within, and with a hold that one of the branches resumes.
   */
  get #isBlocked(): boolean {
    return this.settings.reentrant !== false && isBlocked(this.work, this.name.id, this.request.mode);
  }

  onRefused(retryAfterMs: number): void {
    this.#fail(new LockTimeoutError({ key: this.key, category: this.category, waitedMs: 0, retryAfterMs }), 'refused');
  }

  onFailed(error: Error): void {
    this.#fail(error);
  }

  #fail(error: Error, outcome?: Failure): void {
    this.work.scope.holds.removePending(this);
    setCallSite(error, this.callSite);
    this.result.reject(error);
    reportFailed(this.work.scope.runtime.events, this, error, outcome);
  }
}

/** Acquires without a wait. Returns undefined if the key is not free. */
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
