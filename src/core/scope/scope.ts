import { onAbort } from '../base/abort-signals.ts';
import type { Deferred } from '../base/deferred.ts';
import { inspectAsJson } from '../base/shown.ts';
import type { Grant } from '../lease/grant.ts';
import type { LockLostError } from '../model/errors.ts';
import type { LockKey, LockName } from '../model/key.ts';
import type { TraceSignatures } from '../model/signature.ts';
import type { Hold, HoldMode, Trace } from '../model/types.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { ScopedController } from './scoped-controller.ts';
import { warnIfUnheard, warnOfLateWork } from './warnings.ts';

/** A hold as its scope sees it. */
export interface OwnedHold extends Hold {
  readonly grant: Grant;
  /** The error of its loss, if it is lost and not released. */
  readonly loss: LockLostError | undefined;
  /** Releases it, for a caller that does not wait. */
  startRelease(): Deferred<void>;
}

/** Where a scope's trace came from, and what it sends to called services if that differs from its `Locks`' options. */
export interface Outgoing {
  /** Whether other scopes may work for the same trace: its id was not made for this scope. Default false. */
  readonly isAdopted?: boolean | undefined;
  readonly headerName?: string | undefined;
  readonly signatures?: TraceSignatures | undefined;
}

/**
 * One request's or job's life: its owner, its holds and its signal. When its work is over, its remaining holds are released,
 * newest first.
 */
export class Scope implements Trace {
  readonly traceId: string;
  readonly #runtime: Runtime;
  /** The name of the header that carries the trace id, from the caller and to called services. */
  readonly headerName: string;
  /** Signs its trace id for called services, if secrets are set. */
  readonly signatures: TraceSignatures | undefined;
  readonly #isAdopted: boolean;
  /** In the order of their acquires. */
  readonly #holds: OwnedHold[] = [];
  /** By hold: how many promises of `waitUntil` are not settled. Most scopes have none. */
  #postponed: Map<OwnedHold, number> | undefined;
  /** Acquires that wait; called when the client leaves, the work ends or the scope is over. Most scopes have none. */
  #listeners: Set<() => void> | undefined;
  /** Signals that tell this job, and the jobs within it, to stop. */
  #stopSignals: readonly AbortSignal[] = [];
  /** The holds that guards acquired. They last until the work is over, unless the handler releases them. */
  #guarded: readonly OwnedHold[] = none;
  #requestOwner: string | undefined;
  #controller: ScopedController | undefined;
  #abortReason: unknown;
  #state: 'open' | 'ending' | 'over' = 'open';

  constructor(runtime: Runtime, traceId: string, { isAdopted, headerName, signatures }: Outgoing) {
    const { trust } = runtime.settings;
    this.#runtime = runtime;
    this.traceId = traceId;
    this.headerName = headerName ?? runtime.settings.headerName;
    this.signatures = signatures ?? (typeof trust === 'object' ? trust : undefined);
    this.#isAdopted = isAdopted ?? false;
  }

  /** Private, as in each object that an application may log or send. */
  get runtime(): Runtime {
    return this.#runtime;
  }

  /** The trace id is the identity that may re-enter. */
  get owner(): string {
    return this.traceId;
  }

  /** An owner that no other scope has. */
  get requestOwner(): string {
    this.#requestOwner ??= this.runtime.clock.randomId();
    return this.#requestOwner;
  }

  /**
   * The owners that other scopes may wait for while this scope waits: the owners of the keys that it holds, and its trace's
   * owner if that may hold keys elsewhere. A hold of `owner: 'hold'` is a line of work of its own.
   */
  get blockedOwners(): readonly string[] {
    const owners = new Set(this.#isAdopted ? [this.owner] : []);
    for (const { grant } of this.#holds) {
      if (grant.ownerKind !== 'hold' && grant.isOpen) owners.add(grant.request.owner);
    }
    return [...owners];
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** Whether its work is done; promises of `waitUntil` may be pending. */
  get hasEnded(): boolean {
    return this.#state !== 'open';
  }

  /** Whether its client has disconnected; for a job, whether it was told to stop. */
  get hasClientLeft(): boolean {
    return this.#abortReason !== undefined && this.#abortReason !== overReason;
  }

  /** Whether it is a job that was told to stop. */
  get isStopped(): boolean {
    return this.#stopSignals.length > 0 && this.hasClientLeft;
  }

  /** Signals that tell this job to stop; jobs within it stop with it. */
  get stopSignals(): readonly AbortSignal[] {
    return this.#stopSignals;
  }

  get abortReason(): unknown {
    return this.#abortReason;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new ScopedController(this);
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason);
    }
    return this.#controller.signal;
  }

  /** How many holds on a lock are neither released nor lost. */
  holdCount(id: string): number {
    let count = 0;
    for (const hold of this.#holds) if (hold.grant.request.id === id && hold.isHeld()) count += 1;
    return count;
  }

  /** The newest hold on a lock. */
  newestHold(id: string): OwnedHold | undefined {
    let newest: OwnedHold | undefined;
    for (const hold of this.#holds) if (hold.grant.request.id === id) newest = hold;
    return newest;
  }

  /** The name of this key, if the newest hold is on it. */
  newestName(key: LockKey, category: string | undefined): LockName | undefined {
    const name = this.#holds.at(-1)?.grant.name;
    return name !== undefined && name.key === key && name.category === category ? name : undefined;
  }

  /**
   * The grant that an acquire of a lock re-enters. If it only reads and `mode` is 'write', it is the grant that the acquire
   * joins. A lost grant comes first until its holds are released: nothing may be built on it. Then comes a grant of the same
   * mode, so that a reader within a writer's hold leaves the writer's lease alone.
   */
  reentrantGrant(id: string, mode: HoldMode): Grant | undefined {
    let found: Grant | undefined;
    for (const { grant } of this.#holds) {
      if (grant.request.id !== id || grant.ownerKind === 'hold') continue;
      if (grant.lostError !== undefined) return grant;
      if (found === undefined || (found.request.mode !== mode && grant.request.mode === mode)) found = grant;
    }
    return found;
  }

  /** Says that a guard acquired these holds. */
  addGuarded(holds: readonly OwnedHold[]): void {
    this.#guarded = this.#guarded === none ? holds : [...this.#guarded, ...holds];
  }

  /** The holds that guards acquired, in their order; also released ones. */
  get guarded(): readonly OwnedHold[] {
    return this.#guarded;
  }

  /**
   * Warns once if a guard has released its lock and the work of its request goes on: called when code uses this scope after
   * its end.
   */
  warnIfLate(): void {
    if (this.#guarded === none || !this.isOver) return;
    warnOfLateWork();
  }

  add(hold: OwnedHold): void {
    this.#holds.push(hold);
  }

  forget(hold: OwnedHold): void {
    const at = this.#holds.lastIndexOf(hold);
    // Mostly the newest: `splice` would make an array of it.
    if (at === this.#holds.length - 1) this.#holds.pop();
    else if (at >= 0) this.#holds.splice(at, 1);
  }

  /** Calls `listener` when the client has left, the work has ended or the scope is over. */
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
      // Holds that other pending work acquired since the end stay until the last of that work has settled.
      if (postponed.size === 0) this.#finish();
      else hold.startRelease();
    };
  }

  postpone(hold: OwnedHold, promise: PromiseLike<unknown>): void {
    const settled = this.keep(hold);
    Promise.resolve(promise).then(settled, (cause: unknown) => {
      const message = 'Work that was handed to waitUntil failed';
      this.runtime.events.emit('warning', { code: 'LOCK_WAIT_UNTIL', message, cause });
      settled();
    });
  }

  /** Ends the work: releases all holds but those that `waitUntil` postpones. Safe to call again. */
  end(): void {
    if (this.#state !== 'open') return;
    this.#state = 'ending';
    const postponed = this.#postponed;
    if (postponed === undefined || postponed.size === 0) {
      this.#finish();
      return;
    }
    this.#notify();
    for (const hold of this.#newestFirst()) if (!postponed.has(hold)) hold.startRelease();
  }

  /** Says that the client has left. The handler keeps its holds, and is only told. Not every `AbortSignal` has a reason. */
  abort(reason: unknown = new DOMException('This operation was aborted', 'AbortError')): void {
    if (this.#abortReason !== undefined) return;
    this.#abortReason = reason;
    this.#controller?.abort(reason);
    this.#notify();
  }

  /** Ends it while its work may go on: its holds are lost. */
  abandon(why: string): void {
    if (this.isOver) return;
    for (const hold of this.#newestFirst()) this.runtime.grants.lose(hold.grant, why);
    this.#finish();
  }

  /** Stops the job when one of the signals is aborted, or was. The listeners are removed once the job is stopped or over. */
  stopOn(signals: readonly AbortSignal[]): void {
    if (signals.length === 0) return;
    this.#stopSignals = signals;
    const unsubscribes = signals.map((signal) => onAbort(signal, () => this.abort(signal.reason)));
    const unsubscribe = (): void => {
      // Work that `waitUntil` postpones can be stopped, too.
      if (!this.isStopped && !this.isOver) return;
      this.unlisten(unsubscribe);
      for (const each of unsubscribes) each();
    };
    this.listen(unsubscribe);
    const aborted = signals.find((signal) => signal.aborted);
    if (aborted !== undefined) this.abort(aborted.reason);
  }

  /** What a response or a log may show: not the trace id, which lets others in. */
  toJSON(): object {
    return { isOver: this.isOver, holds: [...this.#holds] };
  }

  #finish(): void {
    this.#state = 'over';
    if (this.#abortReason === undefined) this.abort(overReason);
    else this.#notify();
    for (const hold of this.#newestFirst()) {
      warnIfUnheard(hold.grant, this.runtime.events);
      hold.startRelease();
    }
  }

  #notify(): void {
    if (this.#listeners !== undefined) for (const listener of [...this.#listeners]) listener();
  }

  #newestFirst(): OwnedHold[] {
    return [...this.#holds].reverse();
  }
}

inspectAsJson(Scope, 'Trace');
const none: readonly OwnedHold[] = [];

const overReason: Error = new DOMException('The request or job is over', 'AbortError');

/** The message for code that acquires or keeps a lock in a scope that is over. */
export const scopeIsOver =
  'The request or job that this call belongs to is over. Likely causes: work that was not awaited, or was begun after the response; keep the lock for it with `hold.waitUntil(promise)`, or give it a life of its own with `runInTrace`';
