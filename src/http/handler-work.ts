import { LockScopeError } from '../core/model/errors/mistakes.ts';
import { currentScope } from '../core/scope/context.ts';
import { type Scope, scopeHasEnded } from '../core/scope/scope.ts';
import type { ResponseWatch } from './response/response-watch.ts';
import type { TracedRequest } from './traced-request.ts';

/** Finds the request of a handler that may not have it among its arguments. */
export class HandlerWork {
  readonly #watches = new WeakMap<Scope, ResponseWatch>();

  /** The handler of this request may run from now on. */
  expect({ scope, watch }: TracedRequest): void {
    this.#watches.set(scope, watch);
  }

  /** Runs a handler as a part of its request's work. Throws `LockScopeError` if other code has responded before it began. */
  run<T>(handler: () => T | PromiseLike<T>): T | PromiseLike<T> {
    const scope = currentScope();
    const watch = scope && this.#watches.get(scope);
    if (watch === undefined) return handler();
    if (watch.isDone) throw new LockScopeError(scopeHasEnded);
    return watch.run(handler);
  }
}
