import { onAbort } from '../base/abort-signals.ts';
import { inspectAsJson } from '../base/shown.ts';
import { hasCode } from '../model/errors/by-code.ts';
import { LockLostError, LockStoreError } from '../model/errors/failures.ts';
import { LockConfigError } from '../model/errors/mistakes.ts';
import type { LockName } from '../model/key.ts';
import type { BatchHold, Hold } from '../model/types.ts';
import { checkValue, promised } from '../model/validate.ts';
import type { ScopedHold } from './hold.ts';

/** Several holds of one scope, as one: also the hold of a request whose guard has several keys. Its methods work when destructured. */
export class ScopedBatch implements BatchHold, Hold {
  readonly holds: ReadonlyMap<string, ScopedHold>;
  readonly #inOrder: readonly ScopedHold[];
  #signal: AbortSignal | undefined;
  #unsubscribe: (() => void)[] = [];
  #released: Promise<void> | undefined;

  /** `names` is the caller's order, `inOrder` the order of the acquires. */
  constructor(names: readonly LockName[], inOrder: readonly ScopedHold[]) {
    const byKey = new Map(inOrder.map((hold) => [hold.key, hold]));
    this.holds = new Map(names.map(({ key }) => [key, byKey.get(key) as ScopedHold]));
    this.#inOrder = inOrder;
  }

  get key(): string {
    return [...this.holds.keys()].join(', ');
  }

  get traceId(): string {
    return this.#newest.traceId;
  }

  get branch(): string {
    return this.#newest.branch;
  }

  /** That of one key would be wrong for the data of the others. */
  get fence(): number {
    throw severalKeys('fence', this.#inOrder.length);
  }

  readonly detach = async (): Promise<string> => {
    throw severalKeys('detach', this.#inOrder.length);
  };

  /** A batch has one at least. */
  get #newest(): ScopedHold {
    return this.#inOrder.at(-1) as ScopedHold;
  }

  /** The order of their releases: the last acquired first. */
  get newestFirst(): readonly ScopedHold[] {
    return [...this.#inOrder].reverse();
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#watch();
    return this.#signal;
  }

  readonly isHeld = (): boolean => this.#inOrder.every((hold) => hold.isHeld());

  readonly remainingMs = (): number => Math.min(...this.#inOrder.map((hold) => hold.remainingMs()));

  readonly assertHeld = (minRemainingMs?: number): void => {
    for (const hold of this.#inOrder) hold.assertHeld(minRemainingMs);
  };

  readonly extend = (leaseMs: number): Promise<void> => allOf(this.#inOrder.map((hold) => hold.extend(leaseMs)));

  readonly waitUntil = (promise: PromiseLike<unknown>): void => {
    checkValue('what waitUntil is given', promise, promised);
    const settled = Promise.resolve(promise).then(ignore, ignore);
    const errors: unknown[] = [];
    for (const [index, hold] of this.#inOrder.entries()) {
      try {
        // A rejection is reported once.
        hold.waitUntil(index === 0 ? promise : settled);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw worstOf(errors);
  };

  readonly release = (): Promise<void> => {
    if (this.#released === undefined) {
      this.#unlisten();
      this.#released = allOf(this.newestFirst.map((hold) => hold.release()));
      // A release that nobody awaits must not end the process.
      this.#released.catch(ignore);
    }
    return this.#released;
  };

  /** Throws as `ScopedHold.assertOpen` does, if one of its holds was released. */
  assertOpen(): void {
    for (const hold of this.#inOrder) hold.assertOpen();
  }

  /** Postpones the automatic release until the returned function is called. */
  keep(): () => void {
    const settle = this.#inOrder.map((hold) => hold.keep());
    return () => {
      for (const settled of settle) settled();
    };
  }

  /** As `ScopedHold.endBlock`, for each of its holds. */
  [Symbol.asyncDispose](): Promise<void> {
    const ended = allOf(this.newestFirst.map((hold) => hold.endBlock().promise));
    // Work that `waitUntil` was given may still look at its signal.
    if (this.#inOrder.every((hold) => hold.isReleased)) this.#unlisten();
    // As in `release`.
    ended.catch(ignore);
    return ended;
  }

  #unlisten(): void {
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
  }

  /** As `ScopedHold.toJSON`, for each of its holds. */
  toJSON(): object {
    return { key: this.key, remainingMs: Math.round(this.remainingMs()), holds: [...this.holds.values()] };
  }

  /** Aborted with the first of its holds' signals; it listens to them until they are released together. */
  #watch(): AbortSignal {
    const controller = new AbortController();
    for (const { signal, isReleased } of this.#inOrder) {
      const abort = (): void => controller.abort(signal.reason);
      if (signal.aborted) abort();
      else if (!isReleased) this.#unsubscribe.push(onAbort(signal, abort));
    }
    return controller.signal;
  }
}

inspectAsJson(ScopedBatch, 'Batch');

/** Waits for all of them. Rejects with `worstOf` their errors. */
export async function allOf(work: readonly Promise<void>[]): Promise<void> {
  const errors: unknown[] = [];
  for (const result of await Promise.allSettled(work)) if (result.status === 'rejected') errors.push(result.reason);
  if (errors.length > 0) throw worstOf(errors);
}

/** One error for several: a loss, rather than a store that did not reply. Its `cause` has all of them. */
function worstOf(errors: readonly unknown[]): unknown {
  const worst = errors.find((error) => hasCode(error, 'ERR_LOCK_LOST')) ?? errors[0];
  if (errors.length < 2) return worst;
  const cause = new AggregateError(errors, `${errors.length} locks of a batch failed`);
  if (hasCode(worst, 'ERR_LOCK_LOST')) {
    const { key, category, fence, value } = worst;
    return atSameCall(worst, new LockLostError(worst.message, { key, category, fence, value, cause }));
  }
  if (!hasCode(worst, 'ERR_LOCK_STORE')) return worst;
  const { key, category, outcome, retryable } = worst;
  return atSameCall(worst, new LockStoreError(worst.message, { key, category, outcome, isHeld: !retryable, cause }));
}

function severalKeys(member: string, count: number): LockConfigError {
  return new LockConfigError(
    `Expected \`${member}\` of a hold on one key, got a hold on ${count} keys: ask for that of each key, as in \`req.locks.get(key)\` or \`hold.holds.get(key)\``,
  );
}

/** The stack of an error shows the application's call. */
function atSameCall<E extends Error>({ stack }: Error, error: E): E {
  return stack === undefined ? error : Object.assign(error, { stack });
}

function ignore(): void {}
