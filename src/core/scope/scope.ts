import type { Grant } from '../lease/grant.ts';
import type { TraceSignatures } from '../model/signature.ts';
import type { LockMode, Trace } from '../model/types.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { ScopedHold } from './hold.ts';
import { ScopedController } from './scoped-controller.ts';

/** Where a scope's trace came from, and what it tells called services in place of what its `Locks` says. */
export interface Outgoing {
  /** Whether somebody else may work for the same trace: its id was not made for this scope. Default false. */
  readonly isAdopted?: boolean | undefined;
  readonly traceparent?: string | undefined;
  readonly headerName?: string | undefined;
  readonly signatures?: TraceSignatures | undefined;
}

/**
 * One request's or job's life: its owner, its holds and its signal. It is over when its work is: then what is left of its
 * holds is given back, newest first.
 */
export class Scope implements Trace {
  readonly traceId: string;
  readonly runtime: Runtime;
  /** The header that services called from here should get as well, if the request came with one. */
  readonly traceparent: string | undefined;
  /** The header that its trace id came in, or would have: services called from here get it in the same one. */
  readonly headerName: string;
  /** What signs its trace id for them, if anything does. */
  readonly signatures: TraceSignatures | undefined;
  readonly #isAdopted: boolean;
  /** In the order of their acquires. */
  readonly #holds: ScopedHold[] = [];
  /** How much work was handed to `waitUntil` and is not settled, by hold. Most scopes have none. */
  #postponed: Map<ScopedHold, number> | undefined;
  /** Acquires that wait: asked to look again when the client leaves, the work ends or the scope is over. Most scopes have none. */
  #watchers: Set<() => void> | undefined;
  #requestOwner: string | undefined;
  #controller: ScopedController | undefined;
  #abortReason: unknown;
  #state: 'open' | 'ending' | 'over' = 'open';

  constructor(runtime: Runtime, traceId: string, { isAdopted, traceparent, headerName, signatures }: Outgoing) {
    const { trust } = runtime.settings;
    this.runtime = runtime;
    this.traceId = traceId;
    this.traceparent = traceparent;
    this.headerName = headerName ?? runtime.settings.headerName;
    this.signatures = signatures ?? (typeof trust === 'object' ? trust : undefined);
    this.#isAdopted = isAdopted ?? false;
  }

  /** The trace's id is the identity that may re-enter. */
  get owner(): string {
    return this.traceId;
  }

  /** An owner that no other scope has. */
  get requestOwner(): string {
    this.#requestOwner ??= this.runtime.clock.randomId();
    return this.#requestOwner;
  }

  /**
   * The owners for whom others may wait while this scope does: whose keys it holds, and its trace's where that may hold keys
   * elsewhere. A hold of `owner: 'hold'` is a line of work of its own.
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

  /** Whether its work is done; what `waitUntil` postpones may go on. */
  get hasEnded(): boolean {
    return this.#state !== 'open';
  }

  /** Whether its client has left; of a job, whether it was told to stop. */
  get hasClientLeft(): boolean {
    return this.#abortReason !== undefined && this.#abortReason !== overReason;
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
  newestHold(id: string): ScopedHold | undefined {
    let newest: ScopedHold | undefined;
    for (const hold of this.#holds) if (hold.grant.request.id === id) newest = hold;
    return newest;
  }

  /**
   * The grant that an acquire of a lock re-enters, or, where it only reads and `mode` is to write, the one that the acquire
   * joins. One that was lost comes before all others until its holds are released: nothing is built on it. Then the one of
   * the same mode, so that a reader within a writer's time leaves the writer's lease alone.
   */
  reentrantGrant(id: string, mode: LockMode): Grant | undefined {
    let found: Grant | undefined;
    for (const { grant } of this.#holds) {
      if (grant.request.id !== id || grant.ownerKind === 'hold') continue;
      if (grant.lostError !== undefined) return grant;
      if (found === undefined || (found.request.mode !== mode && grant.request.mode === mode)) found = grant;
    }
    return found;
  }

  add(hold: ScopedHold): void {
    this.#holds.push(hold);
  }

  forget(hold: ScopedHold): void {
    const at = this.#holds.lastIndexOf(hold);
    if (at >= 0) this.#holds.splice(at, 1);
  }

  /** Calls `look` when the client has left, the work has ended or the scope is over; the function that comes back ends that. */
  onChange(look: () => void): () => void {
    this.#watchers ??= new Set();
    const watchers = this.#watchers.add(look);
    return () => {
      watchers.delete(look);
    };
  }

  /** Postpones the automatic release of a hold until the function that comes back is called. */
  keep(hold: ScopedHold): () => void {
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
      // What the work of others has acquired since the end is theirs until the last of it has settled.
      if (postponed.size === 0) this.#finish();
      else hold.giveBack();
    };
  }

  postpone(hold: ScopedHold, promise: PromiseLike<unknown>): void {
    const settled = this.keep(hold);
    Promise.resolve(promise).then(settled, (cause: unknown) => {
      const message = 'Work that was handed to waitUntil failed';
      this.runtime.events.emit('warning', { code: 'LOCK_WAIT_UNTIL', message, cause });
      settled();
    });
  }

  /** The work is done: holds are given back, but for those that `waitUntil` postpones. Safe to call again. */
  end(): void {
    if (this.#state !== 'open') return;
    this.#state = 'ending';
    const postponed = this.#postponed;
    if (postponed === undefined || postponed.size === 0) {
      this.#finish();
      return;
    }
    this.#look();
    for (const hold of this.#newestFirst()) if (!postponed.has(hold)) hold.giveBack();
  }

  /** The client has left: nothing is taken from the handler, it is only told. Not every `AbortSignal` has a reason. */
  abort(reason: unknown = new DOMException('This operation was aborted', 'AbortError')): void {
    if (this.#abortReason !== undefined) return;
    this.#abortReason = reason;
    this.#controller?.abort(reason);
    this.#look();
  }

  /** Ends it although its work is not known to be: what it holds is lost. */
  abandon(why: string): void {
    if (this.isOver) return;
    for (const hold of this.#newestFirst()) this.runtime.keeper.lose(hold.grant, why);
    this.#finish();
  }

  #finish(): void {
    this.#state = 'over';
    if (this.#abortReason === undefined) this.abort(overReason);
    else this.#look();
    for (const hold of this.#newestFirst()) hold.giveBack();
  }

  #look(): void {
    if (this.#watchers !== undefined) for (const look of [...this.#watchers]) look();
  }

  #newestFirst(): ScopedHold[] {
    return [...this.#holds].reverse();
  }
}

const overReason: Error = new DOMException('The request or job is over', 'AbortError');
