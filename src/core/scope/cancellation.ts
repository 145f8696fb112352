import { onAbort } from '../base/abort-signals.ts';
import { LockAbortedError, type LockErrorDetails, LockScopeError } from '../model/errors.ts';
import type { Cancellation } from '../wait/task.ts';
import { type Scope, scopeIsOver } from './scope.ts';

/** The lock that the acquire is for, as far as it is known. */
type CancelledLock = Pick<LockErrorDetails, 'key' | 'category'>;

/**
 * What makes an acquire give up before its time: its signal, and the end of its scope. A guard acquires for a handler, so it
 * also gives up when the client has disconnected, and when the work has ended though `waitUntil` keeps the scope open. A
 * job that was told to stop does not wait, but still gets a free key: a refusal would leave half a transfer.
 */
export class ScopeCancellation implements Cancellation {
  readonly #lock: CancelledLock;
  readonly #scope: Scope;
  readonly #signal: AbortSignal | undefined;
  readonly #isForGuard: boolean;
  /** While a wait listens. */
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

/** Why an acquire that begins now must give up, if there is a reason. */
export function cancellationError(
  { key, category }: CancelledLock,
  scope: Scope,
  signal: AbortSignal | undefined,
  isForGuard: boolean,
): Error | undefined {
  if (signal?.aborted) return new LockAbortedError({ key, category, cause: signal.reason });
  if (isForGuard && scope.hasClientLeft) return new LockAbortedError({ key, category, cause: scope.abortReason });
  const isOver = isForGuard ? scope.hasEnded : scope.isOver;
  if (!isOver) return undefined;
  if (!isForGuard) scope.warnIfLate();
  return new LockScopeError(scopeIsOver, { key, category });
}
