import { currentScope, runInScope } from '../base/process-state.ts';
import { LockAbortedError } from '../model/errors.ts';
import { acquireRules } from '../model/options.ts';
import { audienceRule, signatureHeader } from '../model/signature.ts';
import type { Trace } from '../model/types.ts';
import { callable, checkOptions, checkValue, objectWith, text } from '../model/validate.ts';
import { defaultLocks, type Locks, runtimeOf } from '../runtime/locks.ts';
import { JobScope } from './job-scope.ts';

/** For whom a job works, with what, and until when. */
export interface RunInTraceOptions {
  /** The trace, and so the owner, to work for. Default: that of the surrounding scope, or a new one. */
  readonly traceId?: string | undefined;
  /** Default: that of the surrounding scope, or the configured one. */
  readonly locks?: Locks | undefined;
  /**
   * Tells the job to stop. When it is aborted, so is the signal of the job's scope, and of those that jobs within it have:
   * their acquires wait no longer, but reject with `LockAbortedError` where the key is not free. What is held stays held
   * until the routine has settled. One that is already aborted refuses to begin.
   */
  readonly signal?: AbortSignal | undefined;
}

/** What `traceHeaders` takes. */
export interface TraceHeadersOptions {
  /** Whom the signature is for: the `audience` that the called service has. Default: that of this service. */
  readonly audience?: string | undefined;
}

/** What a trace id looks like, wherever it comes from; `__proto__` would be no name in an object of the application's. */
export const traceIdPattern: RegExp = /^(?!__proto__$)[A-Za-z0-9._-]{1,128}$/;

const rules = {
  traceId: text(traceIdPattern, '1 to 128 letters, digits, dots, underscores or hyphens'),
  locks: objectWith('a `Locks`', 'on', 'close'),
  signal: acquireRules.signal,
};

/**
 * Runs a job in a scope of its own: what it acquires and does not release is given back when its promise has settled.
 * Rejects as `routine` does, and with `LockAbortedError` where `signal` was aborted before; `routine` is not called then.
 */
export async function runInTrace<T>(routine: () => T | PromiseLike<T>, options?: RunInTraceOptions): Promise<T> {
  checkValue('the first argument of runInTrace', routine, callable);
  const { traceId, locks, signal } = checkOptions(options, rules, 'runInTrace');
  if (signal?.aborted) throw new LockAbortedError({ cause: signal.reason });
  const outer = currentScope();
  const runtime = locks === undefined ? (outer?.runtime ?? runtimeOf(defaultLocks())) : runtimeOf(locks);
  const around = outer?.isOver === false ? outer : undefined;
  const id = traceId ?? around?.traceId ?? runtime.clock.randomId();
  const scope = new JobScope(runtime, id, {
    isAdopted: traceId !== undefined || around !== undefined,
    traceparent: outer?.traceparent,
    headerName: outer?.headerName,
    signatures: outer?.runtime === runtime ? outer.signatures : undefined,
  });
  const stops = [signal, ...((around as Partial<JobScope> | undefined)?.stops ?? [])];
  scope.obey(stops.filter((stop) => stop !== undefined));
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

/**
 * The headers that make a called service work for this trace, so that it re-enters; none outside a scope. Where `trust` has
 * secrets, one of them is the id's signature for `audience`: the callee takes it for 30 seconds, as often as it comes, so
 * make the headers anew for each call. Without secrets `audience` says nothing. Throws `LockConfigError` for bad options.
 */
export function traceHeaders(options?: TraceHeadersOptions): Record<string, string> {
  const { audience } = checkOptions(options, headerRules, 'traceHeaders');
  const scope = currentScope();
  if (scope === undefined) return {};
  const headers: Record<string, string> = { [scope.headerName]: scope.traceId };
  if (scope.signatures !== undefined) {
    headers[signatureHeader] = scope.signatures.sign(scope.traceId, scope.runtime.clock.now().wallMs, audience);
  }
  if (scope.traceparent !== undefined) headers.traceparent = scope.traceparent;
  return headers;
}

const headerRules = { audience: audienceRule };
