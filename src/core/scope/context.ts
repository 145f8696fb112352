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

/**
 * The branch of a scope in which the calling code runs, also for code of a job within it. The root if the async context was
 * lost, or belongs to another scope.
 */
export function branchIn(scope: Scope): Branch {
  for (let branch = currentBranch(); branch !== undefined; branch = branch.scope.root.parent) {
    if (branch.scope === scope) return branch;
  }
  return scope.root;
}

/** Runs a function, and everything that it begins, in a branch. */
export function runInBranch<T>(branch: Branch, run: () => T): T {
  return processState().branches.run(branch, run);
}
