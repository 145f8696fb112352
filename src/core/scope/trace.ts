import { LockAbortedError } from '../model/errors.ts';
import { acquireRules } from '../model/options.ts';
import { audienceRule, signatureHeader } from '../model/signature.ts';
import type { Trace } from '../model/types.ts';
import { callable, checkOptions, checkValue, objectWith, text } from '../model/validate.ts';
import { defaultLocks, type Locks, runtimeOf } from '../runtime/locks.ts';
import { currentScope, runInScope } from './current-scope.ts';
import { Scope } from './scope.ts';

/** Which trace a job works for, with which `Locks`, and what stops it. */
export interface RunInTraceOptions {
  /** The trace, and so the owner, to work for. Default: that of the surrounding scope, or a new one. */
  readonly traceId?: string | undefined;
  /** Default: that of the surrounding scope, or the configured one. */
  readonly locks?: Locks | undefined;
  /**
   * Tells the job to stop. When it is aborted, the signals of the job's scope and of the jobs within it are aborted, too:
   * their acquires stop waiting, and reject with `LockAbortedError` if the key is not free. Holds stay held until the
   * routine has settled. If it is already aborted, the job does not begin.
   */
  readonly signal?: AbortSignal | undefined;
}

/** What `traceHeaders` takes. */
export interface TraceHeadersOptions {
  /** The `audience` that the called service has: the signature is valid there alone. Default: that of this service. */
  readonly audience?: string | undefined;
}

/** The form of every trace id. `__proto__` is refused, since applications use ids as property names. */
export const traceIdPattern: RegExp = /^(?!__proto__$)[A-Za-z0-9._-]{1,128}$/;

const rules = {
  traceId: text(traceIdPattern, '1 to 128 letters, digits, dots, underscores or hyphens'),
  locks: objectWith('a `Locks`', 'on', 'close'),
  signal: acquireRules.signal,
};

/**
 * Runs a job in a scope of its own: locks that it acquires and does not release are released when its promise has settled.
 * Rejects as `routine` does, and with `LockAbortedError` if `signal` was aborted before; `routine` is not called then.
 */
export async function runInTrace<T>(routine: () => T | PromiseLike<T>, options?: RunInTraceOptions): Promise<T> {
  checkValue('the first argument of runInTrace', routine, callable);
  const { traceId, locks, signal } = checkOptions(options, rules, 'runInTrace');
  if (signal?.aborted) throw new LockAbortedError({ cause: signal.reason });
  const outer = currentScope();
  const runtime = locks === undefined ? (outer?.runtime ?? runtimeOf(defaultLocks())) : runtimeOf(locks);
  const around = outer?.isOver === false ? outer : undefined;
  const id = traceId ?? around?.traceId ?? runtime.clock.randomId();
  const scope = new Scope(runtime, id, {
    isAdopted: traceId !== undefined || around !== undefined,
    traceparent: outer?.traceparent,
    headerName: outer?.headerName,
    signatures: outer?.runtime === runtime ? outer.signatures : undefined,
  });
  const stopSignals = [signal, ...(around?.stopSignals ?? [])];
  scope.stopOn(stopSignals.filter((each) => each !== undefined));
  try {
    return await runInScope(scope, async () => routine());
  } finally {
    scope.end();
  }
}

/** The request or job that the calling code belongs to; undefined outside of both. */
export function currentTrace(): Trace | undefined {
  return currentScope();
}

/**
 * The headers that let a called service re-enter the locks of this trace; empty outside a scope. If `trust` has secrets,
 * one of the headers is the id's signature for `audience`. The called service accepts a signature for 30 seconds, any number
 * of times: make new headers for each call. Without secrets, `audience` has no effect. Throws `LockConfigError` for bad
 * options.
 */
export function traceHeaders(options?: TraceHeadersOptions): Record<string, string> {
  const { audience } = checkOptions(options, headerRules, 'traceHeaders');
  const scope = currentScope();
  if (scope === undefined) return {};
  scope.warnIfLate();
  const headers: Record<string, string> = { [scope.headerName]: scope.traceId };
  if (scope.signatures !== undefined) {
    headers[signatureHeader] = scope.signatures.sign(scope.traceId, scope.runtime.clock.now().wallMs, audience);
  }
  if (scope.traceparent !== undefined) headers.traceparent = scope.traceparent;
  return headers;
}

const headerRules = { audience: audienceRule };
