import { onAbort } from '../base/abort-signals.ts';
import type { LockErrorDetails } from '../model/errors/lock-error.ts';
import { LockScopeError } from '../model/errors/mistakes.ts';
import { LockAbortedError } from '../model/errors/refusals.ts';
import type { Cancellation } from '../wait/task.ts';
import { type Scope, scopeHasEnded } from './scope.ts';

/** The lock of the acquire, as far as it is known. */
type CancelledLock = Pick<LockErrorDetails, 'key' | 'category'>;

/**
 * Makes an acquire give up early: when its signal is aborted, or its scope ends. A guard acquires for a handler. It also gives
 * up when the client disconnects, and when the work has ended although `waitUntil` keeps the scope open. A job that must stop
 * does not wait, but still gets a free key: a refusal would leave half a transfer.
 */
export class ScopeCancellation implements Cancellation {
  readonly #lock: CancelledLock;
  readonly #scope: Scope;
  readonly #signal: AbortSignal | undefined;
  readonly #isForGuard: boolean;
  /** Set while a wait listens. */
  #check: (() => void) | undefined;
  #unsubscribe: (() => void) | undefined;

  constructor(lock: CancelledLock, scope: Scope, signal: AbortSignal | undefined, isForGuard: boolean) {
    this.#lock = lock;
    this.#scope = scope;
    this.#signal = signal;
    this.#isForGuard = isForGuard;
  }

  get error(): Error | undefined {
    return cancellationError(this.#lock, this.#scope, this.#signal, this.#isForGuard);
  }

  get waitError(): Error | undefined {
    const { isStopped, abortReason } = this.#scope;
    const { key, category } = this.#lock;
    return this.error ?? (isStopped ? new LockAbortedError({ key, category, cause: abortReason }) : undefined);
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

/** The error of an acquire that must give up at once; undefined if it may go on. */
export function cancellationError(
  { key, category }: CancelledLock,
  scope: Scope,
  signal: AbortSignal | undefined,
  isForGuard: boolean,
): Error | undefined {
  if (signal?.aborted) return new LockAbortedError({ key, category, cause: signal.reason });
  if (isForGuard && scope.isCancelled) return new LockAbortedError({ key, category, cause: scope.abortReason });
  const hasEnded = isForGuard ? scope.isWorkDone : scope.hasEnded;
  if (!hasEnded) return undefined;
  if (!isForGuard) scope.warnIfLate();
  return new LockScopeError(scopeHasEnded, { key, category });
}
