import { isPromise, type MaybePromise, settle } from '../base/maybe-promise.ts';
import { hasCode } from '../model/errors/by-code.ts';
import { LockLostError } from '../model/errors/failures.ts';
import { LockConfigError } from '../model/errors/mistakes.ts';
import { runInBranch } from '../scope/context.ts';
import type { Branch } from '../scope/scope.ts';
import { allOf, type ScopedBatch } from './batch-hold.ts';
import type { ScopedHold } from './hold.ts';

/**
 * Runs a routine with a hold of its branch, and releases it. If the routine succeeds, `releaseAfter` releases, and rejects if a
 * lock was lost meanwhile.
 */
export async function runHeld<H extends ScopedHold | ScopedBatch, T>(
  branch: Branch,
  acquired: MaybePromise<H>,
  routine: (hold: H) => T | PromiseLike<T>,
  releaseAfter: (hold: H, value: T) => MaybePromise<void>,
): Promise<T> {
  const { grants } = branch.scope.runtime;
  const hold: H = isPromise(acquired) ? await (acquired as Promise<H>) : acquired;
  hold.assertOpen();
  // Keeps the hold even if the request ends before the routine does, or in the same tick.
  const settled = hold.keep();
  let value: T;
  try {
    // Inside the branch: a lazy promise, such as a query, begins its work when it is resolved. Native promises stay the same.
    value = await runInBranch(branch, () => Promise.resolve(routine(hold)) as Promise<T>);
    assertDone(value);
  } catch (error) {
    await grants.releaseSlot();
    const released = hold[Symbol.asyncDispose]();
    branch.end();
    // A failed release emits an event; the caller needs the routine's own error.
    await released.catch(() => {});
    settled();
    throw error;
  }
  const slot = grants.releaseSlot();
  if (slot !== undefined) await slot;
  try {
    let released: MaybePromise<void>;
    try {
      released = releaseAfter(hold, value);
    } finally {
      branch.end();
    }
    if (isPromise(released)) await released;
  } finally {
    settled();
  }
  return value;
}

/**
 * Throws if a routine has only made a generator, an Observable or an Effect. Its work would begin after the release, which
 * nothing else would show.
 */
function assertDone(value: unknown): void {
  const got = unbegun(value);
  if (got === undefined) return;
  throw new LockConfigError(
    `Expected the routine to have done its work when it returned, got ${got} inside the routine`,
  );
}

/** What a value is whose work has not begun, and what to do with it. */
function unbegun(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const tag = (value as { readonly [Symbol.toStringTag]?: unknown })[Symbol.toStringTag];
  if (tag === 'AsyncGenerator' || tag === 'Generator')
    return 'a generator, which works only when it is read: read it to its end';
  const { subscribe, pipe, next } = value as { readonly [name in 'subscribe' | 'pipe' | 'next']?: unknown };
  // Of RxJS. A subject has `next`, and works without subscribers.
  if (typeof subscribe === 'function' && typeof pipe === 'function' && typeof next !== 'function')
    return 'an Observable, which works only when it is subscribed to: return `lastValueFrom(observable)`';
  if (isEffect(value)) return 'an Effect, which works only when it is run: return `Effect.runPromise(effect)`';
  return undefined;
}

/** Of Effect 3 or 4. What has a tag, such as an Exit or an Option, is a result, and so is an error that can be yielded. */
function isEffect(value: object): boolean {
  const isOfEffect = '~effect/Effect' in value || 'effect_instruction_i0' in value;
  return isOfEffect && !('_tag' in value) && !(value instanceof Error);
}

/** As `releaseKept`, for each hold of a batch. */
export async function releaseAllKept(batch: ScopedBatch, value: unknown): Promise<void> {
  try {
    await allOf(batch.newestFirst.map(async (hold) => releaseKept(hold, value)));
  } finally {
    // The blocks of its holds have ended already: this only ends that of the batch.
    await batch[Symbol.asyncDispose]().catch(() => {});
  }
}

/**
 * Releases after a routine that succeeded. Fails if the lock was lost meanwhile: the result can't be relied on. Makes no
 * promise if its scope still holds the key: with an async context, promises are most of the cost of a re-entry.
 */
export function releaseKept(hold: ScopedHold, value: unknown): MaybePromise<void> {
  const { grant } = hold;
  // Nothing has noticed it yet.
  const hasLapsed = grant.isOpen && !grant.isHeld;
  const lost = grant.lostError ?? (hasLapsed ? lostError(hold, value) : undefined);
  return settle(
    () => hold.endBlock().valueOrPromise,
    () => {
      if (lost !== undefined) throw lostError(hold, value, lost);
    },
    (error) => {
      // Only a loss matters here. If the store did not reply, an event is emitted and the release is repeated.
      if (lost !== undefined || hasCode(error, 'ERR_LOCK_LOST')) throw lostError(hold, value, lost);
    },
  );
}

/** The loss with the routine's value. It replaces the signal's error, which as its cause would repeat the message. */
function lostError(hold: ScopedHold, value: unknown, loss?: LockLostError): LockLostError {
  const message = loss?.message ?? 'The lock was lost while the routine ran: its lease had expired';
  const { grant } = hold;
  grant.wasLossReported = true;
  const { key, category, fence } = grant;
  const details = { key, category, fence, value };
  const cause = loss?.cause;
  return grant.located(new LockLostError(message, cause === undefined ? details : { ...details, cause }));
}
