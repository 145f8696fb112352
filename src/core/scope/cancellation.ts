import { onAbort } from '../base/abort-signals.ts';
import { LockAbortedError, LockScopeError } from '../model/errors.ts';
import type { Cancellation } from '../wait/task.ts';
import { type Scope, scopeIsOver } from './scope.ts';

/**
 * What makes an acquire give up before its time: its signal, and the end of its scope. A guard acquires for a handler, so it
 * also gives up when the client has disconnected, and when the work has ended though `waitUntil` keeps the scope open. A
 * job that was told to stop does not wait, but still gets a free key: a refusal would leave half a transfer.
 */
export class ScopeCancellation implements Cancellation {
  readonly #key: string;
  readonly #scope: Scope;
  readonly #signal: AbortSignal | undefined;
  readonly #isForGuard: boolean;
  /** While a wait listens. */
  #check: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;

  constructor(key: string, scope: Scope, signal: AbortSignal | undefined, isForGuard: boolean) {
    this.#key = key;
    this.#scope = scope;
    this.#signal = signal;
    this.#isForGuard = isForGuard;
  }

  get error(): Error | undefined {
    return cancellationError(this.#key, this.#scope, this.#signal, this.#isForGuard);
  }

  get waitError(): Error | undefined {
    const { isStopped, abortReason } = this.#scope;
    const stopped = isStopped ? { key: this.#key, cause: abortReason } : undefined;
    return this.error ?? (stopped && new LockAbortedError(stopped));
  }

  listen(onCancel: (error: Error) => void): void {
    const check = (): void => {
      const error = this.waitError;
      if (error !== undefined) onCancel(error);
    };
    this.#check = check;
    this.#unsubscribe = this.#signal && onAbort(this.#signal, check);
    this.#scope.listen(check);
  }

  unlisten(): void {
    this.#unsubscribe?.();
    if (this.#check !== undefined) this.#scope.unlisten(this.#check);
  }
}

/** Why an acquire that begins now must give up, if there is a reason. */
export function cancellationError(
  key: string,
  scope: Scope,
  signal: AbortSignal | undefined,
  isForGuard: boolean,
): Error | undefined {
  if (signal?.aborted) return new LockAbortedError({ key, cause: signal.reason });
  if (isForGuard && scope.hasClientLeft) return new LockAbortedError({ key, cause: scope.abortReason });
  const isOver = isForGuard ? scope.hasEnded : scope.isOver;
  if (!isOver) return undefined;
  if (!isForGuard) scope.warnIfLate();
  return new LockScopeError(scopeIsOver, { key });
}
