import { processState } from '../base/process-state.ts';
import type { Scope } from './scope.ts';

/** The scope of the calling code, if the async context has one. */
export function currentScope(): Scope | undefined {
  return processState().scopes.getStore() as Scope | undefined;
}

/** Runs a function, and all that it begins, in a scope. */
export function runInScope<T>(scope: object, run: () => T): T {
  return processState().scopes.run(scope, run);
}
