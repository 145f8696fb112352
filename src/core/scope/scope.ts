import { onAbort } from '../base/abort-signals.ts';
import { inspectAsJson } from '../base/shown.ts';
import type { RouteOf } from '../model/key.ts';
import type { CheckedTrust } from '../model/options.ts';
import { ancestorsOf, bareOwner, branchOf, privateOwner } from '../model/owner.ts';
import type { TraceSignatures } from '../model/signature.ts';
import type { Trace } from '../model/types.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { BranchOf } from './branch.ts';
import { type OwnedHold, ScopeHolds } from './scope-holds.ts';
import type { ScopedController } from './scoped-controller.ts';
import { warnIfUnnoticed, warnOfLateWork } from './warnings.ts';

/** Where a scope's trace is from, and what it sends to called services if that differs from the options of its `Locks`. */
export interface ScopeOptions {
  /** Whether other scopes may work for the same trace: its id was not made for this scope. Default false. */
  readonly isAdopted?: boolean | undefined;
  /** The path of its root. Default: the trace id, or, if that was adopted, what all scopes share that have the id alone. */
  readonly owner?: string | undefined;
  /** The branch of another scope of this process that it is nested in. */
  readonly outer?: Branch | undefined;
  readonly headerName?: string | undefined;
  /** Whose traces are adopted. If it has secrets, they sign, too. */
  readonly trust?: CheckedTrust | undefined;
}

/** A line of work of a request or job. */
export type Branch = BranchOf<Scope>;

/**
 * One request's or job's life: its owner, its holds and its signal. When its work ends, its remaining holds are released,
 * newest first.
 */
export class Scope implements Trace {
  readonly traceId: string;
  /** The path of its root: the identity that may re-enter. */
  readonly owner: string;
  readonly root: Branch;
  /** Whether others may have the same owner: it came with a trace id alone. */
  readonly isBare: boolean;
  /** Set by a guard. It leads to the request: cleared with the end, or no quick round of the collector would free either. */
  #routeOf: RouteOf | undefined;
  #route: string | undefined;
  readonly #runtime: Runtime;
  /** The name of the header that carries the trace id, from the caller and to called services. */
  readonly headerName: string;
  /** Signs its trace id for called services, if secrets are set. */
  readonly signatures: TraceSignatures | undefined;
  readonly #isAdopted: boolean;
  readonly holds: ScopeHolds = new ScopeHolds();
  /** How many promises of `waitUntil` are not settled, by hold. Most scopes have none. */
  #postponed: Map<OwnedHold, number> | undefined;
  /** Of acquires that wait; called when the client disconnects, the work ends or the scope ends. Most scopes have none. */
  #listeners: Set<() => void> | undefined;
  /** Signals that stop this job, and the jobs within it. */
  #stopSignals: readonly AbortSignal[] = [];
  /** The holds that guards acquired. They last until the work ends, unless the handler releases them. */
  #guarded: readonly OwnedHold[] = none;
  /** Whether its end took a lock of a guard from the work. */
  #endedGuard = false;
  readonly #leave: (() => void) | undefined;
  #requestOwner: string | undefined;
  #segments = 0;
  #controller: ScopedController | undefined;
  #abortReason: unknown;
  #state: 'open' | 'ending' | 'ended' = 'open';

  constructor(runtime: Runtime, traceId: string, options: ScopeOptions) {
    const { isAdopted, owner, outer, headerName, trust } = options;
    const { settings } = runtime;
    this.#runtime = runtime;
    this.traceId = traceId;
    this.isBare = isAdopted === true && owner === undefined;
    this.owner = owner ?? (this.isBare ? bareOwner(traceId) : traceId);
    this.root = new BranchOf<Scope>(this, outer);
    this.#leave = outer?.scope.holds.addWithin(this.holds);
    this.headerName = headerName ?? settings.headerName;
    this.signatures = signaturesIn(trust) ?? signaturesIn(settings.trust);
    this.#isAdopted = isAdopted ?? false;
  }

  /** Private, as in each object that an application may log or send. */
  get runtime(): Runtime {
    return this.#runtime;
  }

  /** The owner of its root that no other scope has. */
  get requestOwner(): string {
    this.#requestOwner ??= privateOwner(this.owner, this.runtime.clock.randomId());
    return this.#requestOwner;
  }

  /** The path of its root below the trace. */
  get branch(): string {
    return branchOf(this.owner);
  }

  /** The next part of a path in this scope, unique since no other scope has its root. */
  nextSegment(): string {
    this.#segments += 1;
    return this.#segments.toString(36);
  }

  /**
   * The owners that others may wait for while a branch of this scope waits: of the holds of the branches around it, and its
   * root's ancestors if they may hold keys elsewhere.
   */
  blockedOwners(branch: Branch): readonly string[] {
    return [...new Set([...(this.#isAdopted ? ancestorsOf(this.owner) : []), ...this.holds.blockedOwners(branch)])];
  }

  get hasEnded(): boolean {
    return this.#state === 'ended';
  }

  /** Whether its work is done; promises of `waitUntil` may be pending. */
  get isWorkDone(): boolean {
    return this.#state !== 'open';
  }

  /** Whether its client has disconnected; for a job, whether it must stop. */
  get isCancelled(): boolean {
    return this.#abortReason !== undefined && this.#abortReason !== endReason;
  }

  /** Whether it is a job that must stop. */
  get isStopped(): boolean {
    return this.#stopSignals.length > 0 && this.isCancelled;
  }

  /** Signals that stop this job, and the jobs within it. */
  get stopSignals(): readonly AbortSignal[] {
    return this.#stopSignals;
  }

  get abortReason(): unknown {
    return this.#abortReason;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = this.root.createController();
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  /** The route of the request, for people, once a guard has seen it. */
  get route(): string | undefined {
    return this.#routeOf?.() ?? this.#route;
  }

  /** Remembers how the first guard names the route. The framework may know it only later. */
  nameRoute(routeOf: RouteOf | undefined): void {
    if (!this.hasEnded) this.#routeOf ??= routeOf;
  }

  /** Adds holds that a guard acquired. */
  addGuarded(holds: readonly OwnedHold[]): void {
    this.#guarded = this.#guarded === none ? holds : [...this.#guarded, ...holds];
  }

  /** The holds that guards acquired, in order, including released ones. */
  get guarded(): readonly OwnedHold[] {
    return this.#guarded;
  }

  /**
   * Warns once if the work of a request goes on after its guard has released the lock; not if the handler itself has. Call it when
   * code uses the scope, which may have ended.
   */
  warnIfLate(): void {
    if (!this.#endedGuard || !this.hasEnded) return;
    warnOfLateWork(this.route);
  }

  /** Calls `listener` when the client disconnects, the work ends or the scope ends. */
  listen(listener: () => void): void {
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  unlisten(listener: () => void): void {
    this.#listeners?.delete(listener);
  }

  /** Postpones the automatic release of a hold until the returned function is called. */
  keep(hold: OwnedHold): () => void {
    this.#postponed ??= new Map();
    const postponed = this.#postponed.set(hold, (this.#postponed.get(hold) ?? 0) + 1);
    return () => {
      const left = (postponed.get(hold) ?? 1) - 1;
      if (left > 0) {
        postponed.set(hold, left);
        return;
      }
      postponed.delete(hold);
      if (this.#state !== 'ending') return;
      // Holds that other pending work acquired after the end stay until the last of that work has settled.
      if (postponed.size === 0) this.#finish();
      else hold.startRelease();
    };
  }

  postpone(hold: OwnedHold, promise: PromiseLike<unknown>): void {
    const settled = this.keep(hold);
    Promise.resolve(promise).then(settled, (cause: unknown) => {
      const message = 'Work that was passed to `waitUntil` failed';
      this.runtime.events.emit('warning', { code: 'LOCK_WAIT_UNTIL', message, cause });
      settled();
    });
  }

  /** Ends the work: releases all holds except those that `waitUntil` postpones. Safe to call again. */
  end(): void {
    if (this.#state !== 'open') return;
    this.#state = 'ending';
    this.#endedGuard = this.#hasGuard;
    const postponed = this.#postponed;
    if (postponed === undefined || postponed.size === 0) {
      this.#finish();
      return;
    }
    this.#notify();
    for (const hold of this.#newestFirst()) if (!postponed.has(hold)) hold.startRelease();
  }

  /** Aborts the signal because the client disconnected. The handler keeps its holds. Not every `AbortSignal` has a reason. */
  abort(reason: unknown = new DOMException('This operation was aborted', 'AbortError')): void {
    if (this.#abortReason !== undefined) return;
    this.#abortReason = reason;
    this.#controller?.abort(reason);
    this.#notify();
  }

  /** Ends it although its work may go on: its holds are lost. */
  abandon(why: string): void {
    if (this.hasEnded) return;
    this.#endedGuard ||= this.#hasGuard;
    for (const hold of this.#newestFirst()) this.runtime.grants.lose(hold.grant, why);
    this.#finish();
  }

  /** Stops the job if one of the signals is aborted, now or later. Removes the listeners when the job has stopped or ended. */
  stopOn(signals: readonly AbortSignal[]): void {
    if (signals.length === 0) return;
    this.#stopSignals = signals;
    const unsubscribes = signals.map((signal) => onAbort(signal, () => this.abort(signal.reason)));
    const unsubscribe = (): void => {
      // Work that `waitUntil` postpones can be stopped, too.
      if (!this.isStopped && !this.hasEnded) return;
      this.unlisten(unsubscribe);
      for (const each of unsubscribes) each();
    };
    this.listen(unsubscribe);
    const aborted = signals.find((signal) => signal.aborted);
    if (aborted !== undefined) this.abort(aborted.reason);
  }

  /** For responses and logs: without the trace id, which lets others in. */
  toJSON(): object {
    return { hasEnded: this.hasEnded, holds: [...this.holds.all] };
  }

  #finish(): void {
    this.#state = 'ended';
    this.#route = this.route;
    this.#routeOf = undefined;
    if (this.#abortReason === undefined) this.abort(endReason);
    else this.#notify();
    for (const hold of this.#newestFirst()) {
      warnIfUnnoticed(hold.grant, this.runtime.events, this.route);
      hold.startRelease();
    }
    this.#leave?.();
  }

  /** Whether a hold of a guard is left. */
  get #hasGuard(): boolean {
    return this.#guarded.some((hold) => this.holds.all.includes(hold));
  }

  #notify(): void {
    if (this.#listeners !== undefined) for (const listener of [...this.#listeners]) listener();
  }

  #newestFirst(): OwnedHold[] {
    return [...this.holds.all].reverse();
  }
}

inspectAsJson(Scope, 'Trace');

function signaturesIn(trust: CheckedTrust | undefined): TraceSignatures | undefined {
  return typeof trust === 'object' ? trust : undefined;
}

const none: readonly OwnedHold[] = [];

const endReason: Error = new DOMException('The request or job has ended', 'AbortError');

/** The message for code that acquires or keeps a lock in a scope that has ended. */
export const scopeHasEnded =
  'The request or job that this call belongs to has ended. Likely causes: work that was not awaited, or that began after the response. Keep the lock for it with `hold.waitUntil(promise)`, or run it as a separate job with `runInTrace`';
