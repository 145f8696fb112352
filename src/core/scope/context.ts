import { processState } from '../base/process-state.ts';
import { LockScopeError } from '../model/errors/mistakes.ts';
import type { LockName } from '../model/key.ts';
import type { Branch, Scope } from './scope.ts';

/** The branch of the calling code, if the async context has one. */
export function currentBranch(): Branch | undefined {
  return processState().branches.getStore() as Branch | undefined;
}

/** The branch of the calling code, to lock a key for. Throws `LockScopeError` if it has none. */
export function ownBranch(name: LockName): Branch {
  const branch = currentBranch();
  if (branch !== undefined) return branch;
  throw new LockScopeError(
    'Expected to be called within a request or job, got a call outside of both. Likely causes: `traceContext()` is not mounted, or below this route; a callback that lost the async context (wrap it with `AsyncResource.bind`); code outside a request, such as a job or a test, which needs `runInTrace`',
    name,
  );
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
