import { CallSite } from '../base/call-site.ts';
import { Deferred } from '../base/deferred.ts';
import { inBackground } from '../base/safely.ts';
import { inspectAsJson } from '../base/shown.ts';
import type { Granted } from '../client/granted.ts';
import { Grant, type GrantSource } from '../lease/grant.ts';
import { assertGrantable, assertTransferable } from '../model/capabilities.ts';
import { failAt } from '../model/errors/at-call.ts';
import { LockLostError } from '../model/errors/failures.ts';
import { LockNotHeldError, LockScopeError } from '../model/errors/mistakes.ts';
import { branchOf, isAncestor } from '../model/owner.ts';
import type { DetachOptions, HoldMode } from '../model/types.ts';
import { checkOptions, checkValue, milliseconds, promised, type Rule } from '../model/validate.ts';
import { type Branch, type Scope, scopeHasEnded } from '../scope/scope.ts';
import type { OwnedHold } from '../scope/scope-holds.ts';
import { assertAlone, detach } from './detach.ts';
import { inherit } from './inherit.ts';

const duration = milliseconds();
const detachRules = { leaseMs: duration };

/** Any number will do, since it only asks. */
const remaining: Rule = {
  expected: 'a number of milliseconds',
  accepts: (value) => typeof value === 'number' && !Number.isNaN(value),
};

/**
 * A hold of one scope. Re-entrant holds of a key share one grant. Its methods are bound when they are read: they work when
 * destructured, but cost nothing until then.
 */
export class ScopedHold implements OwnedHold {
  readonly #grant: Grant;
  readonly #mode: HoldMode;
  readonly #renew: boolean;
  #work: Branch;
  #released: Deferred<void> | undefined;
  /** How many promises of `waitUntil` are not settled. */
  #postponed = 0;
  /** Whether its block has ended: it is released when those promises have settled. */
  #isDue = false;

  constructor(grant: Grant, work: Branch, { mode, renew }: { readonly mode: HoldMode; readonly renew: boolean }) {
    this.#grant = grant;
    this.#work = work;
    this.#mode = mode;
    this.#renew = renew;
  }

  get #scope(): Scope {
    return this.#work.scope;
  }

  get work(): Branch {
    return this.#work;
  }

  get mode(): HoldMode {
    return this.#mode;
  }

  get isReleased(): boolean {
    return this.#released !== undefined;
  }

  inherit(): void {
    const { parent } = this.#work;
    // Work that goes on in its branch has it until then, and the branch around waits.
    if (parent === undefined || this.#isDue) return;
    this.#work = parent;
    const { grant } = this;
    if (grant.reentrant === false) return;
    const owner = parent.ownerAs(grant.reentrant);
    // A grant of another branch around it stays with that one.
    if (isAncestor(grant.request.owner, owner)) return;
    // The store knows it under the branch that has ended.
    const { runtime } = this.#scope;
    if (runtime.client.capabilities.transfer) inBackground(inherit(runtime, grant, owner));
    else grant.isLeft = true;
  }

  /** Private, so that a copy of a hold has no owner in it. */
  get grant(): Grant {
    return this.#grant;
  }

  get key(): string {
    return this.grant.key;
  }

  get traceId(): string {
    return this.grant.traceId;
  }

  get branch(): string {
    return branchOf(this.grant.request.owner);
  }

  get fence(): number {
    return this.grant.fence;
  }

  get signal(): AbortSignal {
    return this.grant.signal;
  }

  get isHeld(): () => boolean {
    return () => {
      const isHeld = this.#isHeld();
      if (!isHeld && this.#released === undefined) this.grant.wasLossReported = true;
      return isHeld;
    };
  }

  get remainingMs(): () => number {
    return () => this.#remainingMs();
  }

  get assertHeld(): (minRemainingMs?: number) => void {
    return (minRemainingMs = 0) => this.#assertHeld(minRemainingMs);
  }

  get extend(): (leaseMs: number) => Promise<void> {
    return (leaseMs) => this.#extend(leaseMs);
  }

  get waitUntil(): (promise: PromiseLike<unknown>) => void {
    return (promise) => {
      checkValue('what waitUntil is given', promise, promised);
      // Also after the release, so that a rejection is reported.
      this.#scope.postpone(this, promise);
      if (this.#released !== undefined) throw this.#notHeld();
      this.#postponed += 1;
      const settled = (): void => {
        this.#postponed -= 1;
        if (this.#isDue) this.endBlock();
      };
      Promise.resolve(promise).then(settled, settled);
    };
  }

  get detach(): (options: DetachOptions) => Promise<string> {
    return (options) => this.#detach(options);
  }

  get release(): () => Promise<void> {
    return () => this.startRelease().promise;
  }

  /** Releases it at the end of its block: of `run`, or of `await using`. If `waitUntil` postpones that, nobody waits for it. */
  endBlock(): Deferred<void> {
    if (this.#postponed === 0) return this.startRelease();
    this.#isDue = true;
    return done;
  }

  startRelease(): Deferred<void> {
    if (this.#released === undefined) {
      this.#scope.holds.forget(this);
      const isLast = this.grant.removeHold(this.#renew);
      this.#released = isLast ? this.#scope.runtime.grants.release(this.grant) : done;
      // Only now: what they ask the store for comes after the release.
      this.#scope.holds.checkWaits();
    }
    return this.#released;
  }

  /**
   * Throws if it was released before the code that acquired it could run: a scope may end in the same tick as the grant, or
   * before the caller continues.
   */
  assertOpen(): void {
    if (this.#released === undefined) return;
    const { grant } = this;
    throw grant.located(
      this.#scope.isWorkDone ? new LockScopeError(scopeHasEnded, grant) : new LockNotHeldError(grant),
    );
  }

  /** The error of its loss, if it is lost and not released. */
  get loss(): LockLostError | undefined {
    return this.#released === undefined && this.#remainingMs() <= 0 ? this.#lostError() : undefined;
  }

  /** Postpones the automatic release until the returned function is called. */
  keep(): () => void {
    return this.#scope.keep(this);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.endBlock().promise;
  }

  /** For responses and logs: without the owner, which lets others in, and without the ids of holds and processes. */
  toJSON(): object {
    const { key, category, fence, request } = this.grant;
    return { key, category, mode: request.mode, fence, remainingMs: Math.round(this.#remainingMs()) };
  }

  #isHeld(): boolean {
    return this.#released === undefined && this.grant.isHeld;
  }

  #remainingMs(): number {
    return this.#isHeld() ? this.grant.remainingMs : 0;
  }

  #assertHeld(minRemainingMs: number): void {
    if (this.#released !== undefined) throw this.#notHeld();
    if (minRemainingMs !== 0) checkValue('`minRemainingMs`', minRemainingMs, remaining);
    const leftMs = this.#remainingMs();
    if (leftMs <= 0) throw this.#lostError();
    if (leftMs >= minRemainingMs) return;
    throw unreliable(`it has ${Math.floor(leftMs)} ms left, ${minRemainingMs} were asked for`, this.grant);
  }

  #notHeld(): LockNotHeldError {
    const why = this.#scope.isWorkDone
      ? 'the end of its request or job released it: pass work that goes on to `hold.waitUntil` before that'
      : '`release` was called before: call it when the work has ended';
    return new LockNotHeldError(this.grant, `Expected a hold that lasts, got one that is released; ${why}`);
  }

  /** The error of its loss, for code of the application. */
  #lostError(): LockLostError {
    this.grant.wasLossReported = true;
    return this.grant.lostError ?? unreliable('its lease has expired', this.grant);
  }

  async #detach(options: DetachOptions): Promise<string> {
    const { leaseMs } = checkOptions(options, detachRules, 'detach', 'leaseMs');
    const { grant } = this;
    const { runtime } = this.#scope;
    assertTransferable(runtime.client.capabilities, grant);
    assertGrantable(leaseMs, runtime.client.capabilities);
    const site = new CallSite(this.#detach);
    while (grant.passing !== undefined) await grant.passing;
    this.#assertHeld(0);
    assertAlone(grant);
    this.#released = new Deferred<void>(true);
    this.#scope.holds.forget(this);
    grant.removeHold(this.#renew);
    try {
      const token = failAt(site, detach(runtime, grant, leaseMs));
      this.#scope.holds.checkWaits();
      return await token;
    } finally {
      this.#released.resolve();
    }
  }

  async #extend(leaseMs: number): Promise<void> {
    checkValue('`leaseMs`', leaseMs, duration);
    this.#assertHeld(0);
    await failAt(new CallSite(this.#extend), this.#scope.runtime.grants.extend(this.grant, leaseMs));
    this.#assertHeld(0);
  }
}

inspectAsJson(ScopedHold, 'Hold');

function unreliable(why: string, grant: Grant): LockLostError {
  return new LockLostError(`The lock can't be relied on: ${why}`, grant);
}

const done = new Deferred<void>(true);
done.resolve();

/** Adds a new grant with its first hold. */
export function firstHold(
  branch: Branch,
  { name, request, settings, callSite }: Pick<GrantSource, 'name' | 'request' | 'settings' | 'callSite'>,
  granted: Granted,
): ScopedHold {
  const { scope } = branch;
  const { clock, grants } = scope.runtime;
  const grant = new Grant({ clock, name, work: branch, request, settings, granted, callSite });
  grant.addHold(settings.leaseMs, settings.renew);
  const first = new ScopedHold(grant, branch, settings);
  scope.holds.add(first);
  grants.add(grant);
  return first;
}
