import { onAbort } from '../base/abort-signals.ts';
import { LockAbortedError, LockScopeError } from '../model/errors.ts';
import type { JobScope } from './job-scope.ts';
import type { Scope } from './scope.ts';

/**
 * What makes an acquire give up before its time: its signal and its scope's end; for a guard, which acquires for a handler
 * that would not run any more, its client's leaving, and the end of the work though `waitUntil` postpones the scope's. A
 * job that was told to stop does not wait either, but it still gets a free key: to refuse it would leave half a transfer.
 */
export class Cancellation {
  readonly #key: string;
  readonly #scope: Scope;
  readonly #signal: AbortSignal | undefined;
  readonly #isGuards: boolean;

  constructor(key: string, scope: Scope, signal: AbortSignal | undefined, isGuards: boolean) {
    this.#key = key;
    this.#scope = scope;
    this.#signal = signal;
    this.#isGuards = isGuards;
  }

  /** The error to give up with now, if there is one. */
  get error(): Error | undefined {
    const key = this.#key;
    if (this.#signal?.aborted) return new LockAbortedError({ key, cause: this.#signal.reason });
    if (this.#isGuards && this.#scope.hasClientLeft) {
      return new LockAbortedError({ key, cause: this.#scope.abortReason });
    }
    const isOver = this.#isGuards ? this.#scope.hasEnded : this.#scope.isOver;
    return isOver ? new LockScopeError(scopeIsOver, { key }) : undefined;
  }

  /** For who waits: calls `giveUp` once it is time; the function that comes back ends the listening. */
  listen(giveUp: (error: Error) => void): () => void {
    const check = (): void => {
      const error = this.waitError;
      if (error !== undefined) giveUp(error);
    };
    const unsubscribe = this.#signal && onAbort(this.#signal, check);
    const unwatch = this.#scope.onChange(check);
    return () => {
      unsubscribe?.();
      unwatch();
    };
  }

  /** The error to give up a wait with now, if there is one: also for a job that was told to stop. */
  get waitError(): Error | undefined {
    // The scope may be of another installed copy of this package.
    const { isStopped } = this.#scope as Partial<JobScope>;
    const stopped = isStopped === true ? { key: this.#key, cause: this.#scope.abortReason } : undefined;
    return this.error ?? (stopped && new LockAbortedError(stopped));
  }
}

/** The message for whoever acquires or keeps a lock in a scope that is over. */
export const scopeIsOver =
  'The request or job that this call belongs to is over. Likely causes: work that was not awaited, or was begun after the answer; keep the lock for it with `hold.waitUntil(promise)`, or give it a life of its own with `runInTrace`';
