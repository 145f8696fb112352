import { Deferred } from '../base/deferred.ts';
import type { Grant } from '../lease/grant.ts';
import { LockLostError, LockNotHeldError, LockScopeError } from '../model/errors.ts';
import type { Hold } from '../model/types.ts';
import { checkValue, milliseconds, promised, type Rule } from '../model/validate.ts';
import { scopeIsOver } from './cancellation.ts';
import type { Scope } from './scope.ts';

const duration = milliseconds(1);

/** A part of a millisecond, and more than any lease has, are questions, too. */
const remaining: Rule = {
  expected: 'a number of milliseconds',
  accepts: (value) => typeof value === 'number' && !Number.isNaN(value),
};

/**
 * A hold of one scope. Re-entrant holds of a key share one grant. Its methods are bound when they are read: they can be
 * taken off it, and cost nothing when a hold is made.
 */
export class ScopedHold implements Hold {
  readonly grant: Grant;
  readonly #scope: Scope;
  readonly #renew: boolean;
  #released: Deferred<void> | undefined;

  constructor(grant: Grant, scope: Scope, renew: boolean) {
    this.grant = grant;
    this.#scope = scope;
    this.#renew = renew;
  }

  get key(): string {
    return this.grant.key;
  }

  get owner(): string {
    return this.grant.request.owner;
  }

  get fence(): number {
    return this.grant.fence;
  }

  get signal(): AbortSignal {
    return this.grant.signal;
  }

  get isHeld(): () => boolean {
    return () => this.#isHeld();
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
      // Also where it comes too late: its rejection is to be told.
      this.#scope.postpone(this, promise);
      if (this.#released !== undefined) throw new LockNotHeldError({ key: this.key });
    };
  }

  get release(): () => Promise<void> {
    return () => this.giveBack().promise;
  }

  /** Releases it, for whoever need not wait for that. */
  giveBack(): Deferred<void> {
    if (this.#released === undefined) {
      this.#scope.forget(this);
      const isLast = this.grant.removeHold(this.#renew);
      this.#released = isLast ? this.#scope.runtime.keeper.release(this.grant) : done;
    }
    return this.#released;
  }

  /**
   * Throws where it was given back before whoever acquired it could have it: a scope may end in the very turn of a grant,
   * or between that and the turn in which it is told.
   */
  assertOpen(): void {
    if (this.#released === undefined) return;
    const { key } = this;
    throw this.#scope.hasEnded ? new LockScopeError(scopeIsOver, { key }) : new LockNotHeldError({ key });
  }

  /** What it was lost with, where nobody has released it. */
  get loss(): LockLostError | undefined {
    return this.#released === undefined && this.#remainingMs() <= 0 ? this.#lostError(leaseEnded) : undefined;
  }

  /** Postpones the automatic release until the function that comes back is called. */
  keep(): () => void {
    return this.#scope.keep(this);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.giveBack().promise;
  }

  #isHeld(): boolean {
    return this.#released === undefined && this.grant.isHeld;
  }

  #remainingMs(): number {
    return this.#isHeld() ? this.grant.remainingMs : 0;
  }

  #assertHeld(minRemainingMs: number): void {
    if (this.#released !== undefined) throw new LockNotHeldError({ key: this.key });
    if (minRemainingMs !== 0) checkValue('`minRemainingMs`', minRemainingMs, remaining);
    const leftMs = this.#remainingMs();
    if (leftMs > 0 && leftMs >= minRemainingMs) return;
    const tooLittle = `it has ${Math.floor(leftMs)} ms left, ${minRemainingMs} were asked for`;
    throw this.#lostError(leftMs > 0 ? tooLittle : leaseEnded);
  }

  #lostError(why: string): LockLostError {
    const { lostError } = this.grant;
    return lostError ?? new LockLostError(`The lock can't be relied on: ${why}`, { key: this.key, fence: this.fence });
  }

  async #extend(leaseMs: number): Promise<void> {
    checkValue('`leaseMs`', leaseMs, duration);
    this.#assertHeld(0);
    await this.#scope.runtime.keeper.extend(this.grant, leaseMs);
    this.#assertHeld(0);
  }
}

const leaseEnded = 'its lease has ended';

const done = new Deferred<void>(true);
done.resolve();
