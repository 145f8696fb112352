import { currentScope, runInScope } from './context.ts';
import { LockConfigError } from './errors.ts';
import { defaultLocks, type Locks, runtimeOf } from './locks.ts';
import { Scope } from './scope.ts';
import type { Trace } from './types.ts';
import { checkOptions, objectWith, text } from './validate.ts';

export interface RunInTraceOptions {
  /** The trace, and so the owner, to work for. Default: that of the surrounding scope, or a new one. */
  readonly traceId?: string | undefined;
  /** Default: that of the surrounding scope, or the configured one. */
  readonly locks?: Locks | undefined;
}

/** What a trace id looks like, wherever it comes from. */
export const traceIdPattern: RegExp = /^[A-Za-z0-9._-]{1,128}$/;

const rules = {
  traceId: text(traceIdPattern, '1 to 128 letters, digits, dots, underscores or hyphens'),
  locks: objectWith('a `Locks`', 'on', 'close'),
};

/**
 * Runs a job in a scope of its own: what it acquires and does not release is given back when its promise has settled.
 * Rejects as `routine` does.
 */
export async function runInTrace<T>(routine: () => T | PromiseLike<T>, options?: RunInTraceOptions): Promise<T> {
  if (typeof routine !== 'function')
    throw new LockConfigError('Expected the first argument of runInTrace to be a function');
  const { traceId, locks } = checkOptions(options, rules, 'runInTrace');
  const outer = currentScope();
  const runtime = locks === undefined ? (outer?.runtime ?? runtimeOf(defaultLocks())) : runtimeOf(locks);
  const inherited = outer?.isOver === false ? outer.traceId : undefined;
  const id = traceId ?? inherited ?? runtime.clock.randomId();
  const scope = new Scope(runtime, id, outer?.traceparent, outer?.headerName);
  try {
    return await runInScope(scope, async () => routine());
  } finally {
    scope.end();
  }
}

/** What the calling code belongs to: a request or a job; undefined outside of both. */
export function currentTrace(): Trace | undefined {
  return currentScope();
}

/** The headers that make a called service work for this trace, so that it re-enters; none outside a scope. */
export function traceHeaders(): Record<string, string> {
  const scope = currentScope();
  if (scope === undefined) return {};
  const headers: Record<string, string> = { [scope.headerName]: scope.traceId };
  if (scope.traceparent !== undefined) headers.traceparent = scope.traceparent;
  return headers;
}
