import { processState } from '../base/process-state.ts';
import type { Branch, Scope } from './scope.ts';

/** The branch of the calling code, if the async context has one. */
export function currentBranch(): Branch | undefined {
  return processState().branches.getStore() as Branch | undefined;
}

/** The scope of the calling code, if the async context has one. */
export function currentScope(): Scope | undefined {
  return currentBranch()?.scope;
}

/** Runs a function, and all that it begins, in a branch. */
export function runInBranch<T>(branch: Branch, run: () => T): T {
  return processState().branches.run(branch, run);
}

/** Runs a function, and all that it begins, in the root of a scope. */
export function runInScope<T>(scope: Scope, run: () => T): T {
  return runInBranch(scope.root, run);
}
