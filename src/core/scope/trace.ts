import { LockAbortedError } from '../model/errors/refusals.ts';
import { acquireRules, type CheckedTrust, checkTrust, type Trust, traceRules } from '../model/options.ts';
import { audienceRule, type SignedTrust, signatureHeader } from '../model/signature.ts';
import type { Trace } from '../model/types.ts';
import { callable, checkOptions, checkValue, type Rule, text } from '../model/validate.ts';
import { defaultLocks } from '../runtime/default-locks.ts';
import { type Locks, locksRule, runtimeOf } from '../runtime/locks.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { currentBranch, currentScope, runInBranch } from './context.ts';
import { Scope } from './scope.ts';
import { type AdoptedTrace, adoptedTrace, branchHeader, childOf, traceIdPattern } from './trace-id.ts';

/** Which trace a job works for, with which `Locks`, and what stops it. */
export interface RunInTraceOptions<R extends TraceRequest = TraceRequest> {
  /** The trace, and so the owner, to work for. Default: that of the surrounding scope, or a new one. */
  readonly traceId?: string | undefined;
  /** Default: that of the surrounding scope, or the configured one. */
  readonly locks?: Locks | undefined;
  /**
   * Stops the job. When it is aborted, the signals of the job's scope and of the jobs within it are aborted, too: their acquires
   * stop waiting, and reject with `LockAbortedError` if the key is not free. Holds stay held until the routine has settled. If it
   * is already aborted, the job does not begin.
   */
  readonly signal?: AbortSignal | undefined;
  /**
   * The request to work for, in a handler that gets a fetch `Request` and no response of `node:http`, such as a route handler
   * of Next.js. Outside of a scope, the trace is the one in its header, if `trust` allows it. Its signal stops the job, too.
   */
  readonly request?: R | undefined;
  /**
   * Whose `request` may name its trace. A fetch request has no peer address. Therefore an id is adopted only with `'all'`,
   * secrets, or a predicate that accepts the request. Default: `trust` of the `Locks`; if that is a predicate, it is for
   * requests of `node:http`, and no id is adopted.
   */
  readonly trust?: 'all' | 'none' | ((request: R) => boolean) | SignedTrust | undefined;
}

/** What `traceHeaders` takes. */
export interface TraceHeadersOptions {
  /** The `audience` that the called service has: the signature is valid there alone. Default: that of this service. */
  readonly audience?: string | undefined;
}

/** The part of a fetch `Request` that `runInTrace` reads. */
export interface TraceRequest {
  readonly headers: { get(name: string): string | null };
  /** Aborted when the client disconnects. */
  readonly signal?: AbortSignal | undefined;
}

const request: Rule = {
  expected: 'a fetch `Request`',
  accepts: (value) => typeof (value as Partial<TraceRequest> | null)?.headers?.get === 'function',
};

const rules = {
  traceId: text(traceIdPattern, '1 to 128 letters, digits, dots, underscores or hyphens'),
  locks: locksRule,
  signal: acquireRules.signal,
  request,
  trust: traceRules.trust as Rule,
};

/**
 * Runs `routine` as a job, where locks can be acquired without a request: in a cron job, a message consumer or a test. Within
 * another request or job it has that one's trace, and so may re-enter its locks. When the routine's promise has settled, the locks
 * that it still holds are released. `runInTrace` does not wait for that release, nor for work that the routine did not await; such
 * work can acquire nothing more.
 *
 * Resolves with the routine's result and rejects with its error. Rejects with `LockAbortedError` if `signal` was already aborted;
 * `routine` is not called then. Rejects with `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import { lock, runInTrace } from 'reenlock';
 *
 * export function nightlyReport(signal: AbortSignal) {
 *   return runInTrace(() => lock.run('report', (hold) => writeReport(hold.signal)), { signal });
 * }
 * ```
 */
export async function runInTrace<T, R extends TraceRequest = TraceRequest>(
  routine: () => T | PromiseLike<T>,
  options?: RunInTraceOptions<R>,
): Promise<T> {
  checkValue('the first argument of runInTrace', routine, callable);
  const { traceId, locks, signal, request, trust } = checkOptions<RunInTraceOptions<R>>(options, rules, 'runInTrace');
  const stopped = [signal, request?.signal].find((each) => each?.aborted);
  if (stopped !== undefined) throw new LockAbortedError({ cause: stopped.reason });
  const outerBranch = currentBranch();
  const outer = outerBranch?.scope;
  const runtime = locks === undefined ? (outer?.runtime ?? runtimeOf(defaultLocks())) : runtimeOf(locks);
  const around = outer?.hasEnded === false ? outer : undefined;
  const ownTrust = checkTrust(trust as Trust | undefined);
  const within = traceId === undefined && around !== undefined ? outerBranch : undefined;
  const isGiven = traceId !== undefined || within !== undefined;
  const adopted = isGiven || request === undefined ? undefined : adopt(request, ownTrust, runtime);
  const id = traceId ?? within?.traceId ?? adopted?.traceId ?? runtime.clock.randomId();
  const scope = new Scope(runtime, id, {
    isAdopted: isGiven || adopted !== undefined,
    owner: within === undefined ? adopted?.owner : childOf(within.share(), runtime.clock),
    outer: within,
    headerName: outer?.headerName,
    trust: outer?.runtime === runtime ? outer.signatures : ownTrust,
  });
  const stopSignals = [signal, request?.signal, ...(around?.stopSignals ?? [])];
  scope.stopOn(stopSignals.filter((each) => each !== undefined));
  try {
    return await runInBranch(scope.root, async () => routine());
  } finally {
    scope.end();
  }
}

/** The trace in the headers of a fetch request, if its sender is trusted. */
function adopt(request: TraceRequest, ownTrust: CheckedTrust | undefined, runtime: Runtime): AdoptedTrace | undefined {
  const { headerName, bareTraceId, trust: trustOfLocks } = runtime.settings;
  const trust = ownTrust ?? (typeof trustOfLocks === 'function' ? undefined : trustOfLocks) ?? 'none';
  const { headers } = request;
  const sent = {
    id: headers.get(headerName) ?? undefined,
    branch: headers.get(branchHeader) ?? undefined,
    signature: headers.get(signatureHeader),
  };
  return adoptedTrace(sent, runtime, bareTraceId, trust, (rule) =>
    typeof rule === 'function' ? rule(request as never) === true : rule === 'all',
  );
}

/**
 * Returns the request or job that the calling code belongs to; undefined outside of both.
 *
 * @example
 * ```ts
 * import { currentTrace } from 'reenlock';
 *
 * export function log(message: string) {
 *   console.log(JSON.stringify({ message, traceId: currentTrace()?.traceId }));
 * }
 * ```
 */
export function currentTrace(): Trace | undefined {
  return currentScope();
}

/**
 * Returns the headers that let a called service re-enter the locks of the calling code: the trace id, and the branch, below which each
 * call gets its own branch. Returns no headers outside a request or job. If `trust` has secrets, one of the headers is a signature
 * for `audience`. The called service accepts a signature for 30 seconds, any number of times: make new headers for each call.
 * Without secrets, `audience` has no effect. Your tracer sends `traceparent`, not this function. Throws `LockConfigError` for bad
 * options.
 *
 * @example
 * ```ts
 * import { lock, traceHeaders } from 'reenlock';
 *
 * await lock.run('order:42', async (hold) => {
 *   const headers = traceHeaders({ audience: 'payments' });
 *   await fetch('http://payments.internal/charge', { method: 'POST', headers, signal: hold.signal });
 * });
 * ```
 */
export function traceHeaders(options?: TraceHeadersOptions): Record<string, string> {
  const { audience } = checkOptions(options, headerRules, 'traceHeaders');
  const branch = currentBranch();
  if (branch === undefined) return {};
  const { scope } = branch;
  scope.warnIfLate();
  const path = branch.share();
  const headers: Record<string, string> = { [scope.headerName]: scope.traceId, [branchHeader]: path };
  if (scope.signatures !== undefined) {
    headers[signatureHeader] = scope.signatures.sign(path, scope.runtime.clock.now().wallMs, audience);
  }
  return headers;
}

const headerRules = { audience: audienceRule };
