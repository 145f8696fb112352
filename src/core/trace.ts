import { currentScope, runInScope } from './context.ts';
import { LockConfigError } from './errors.ts';
import { defaultLocks, type Locks, runtimeOf } from './locks.ts';
import type { CheckedTrust } from './options.ts';
import type { Runtime } from './runtime.ts';
import { Scope } from './scope.ts';
import { audienceRule, signatureHeader, type TraceSignatures } from './signature.ts';
import type { Trace } from './types.ts';
import { checkOptions, objectWith, text } from './validate.ts';

export interface RunInTraceOptions {
  /** The trace, and so the owner, to work for. Default: that of the surrounding scope, or a new one. */
  readonly traceId?: string | undefined;
  /** Default: that of the surrounding scope, or the configured one. */
  readonly locks?: Locks | undefined;
}

export interface TraceHeadersOptions {
  /** Whom the signature is for: the `audience` that the called service has. Default: that of this service. */
  readonly audience?: string | undefined;
}

/** What a trace id looks like, wherever it comes from; `__proto__` would be no name in an object of the application's. */
export const traceIdPattern: RegExp = /^(?!__proto__$)[A-Za-z0-9._-]{1,128}$/;

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
  const scope = new TraceScope(runtime, id, {
    traceparent: outer?.traceparent,
    headerName: outer?.headerName,
    trust: outer?.runtime === runtime ? signaturesOf(outer) : undefined,
  });
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
  const signatures = signaturesOf(scope);
  if (signatures !== undefined) {
    headers[signatureHeader] = signatures.sign(scope.traceId, scope.runtime.clock.now().wallMs, audience);
  }
  if (scope.traceparent !== undefined) headers.traceparent = scope.traceparent;
  return headers;
}

const headerRules = { audience: audienceRule };

/** What a scope hands on to the services that are called from it. */
export interface Outgoing {
  readonly traceparent: string | undefined;
  readonly headerName: string | undefined;
  /** Of its `traceContext`. Secrets that it does not have are those of the `Locks`. */
  readonly trust: CheckedTrust | undefined;
}

/** A scope that can sign its trace id. */
export class TraceScope extends Scope {
  readonly signatures: TraceSignatures | undefined;

  constructor(runtime: Runtime, traceId: string, { traceparent, headerName, trust }: Outgoing) {
    super(runtime, traceId, traceparent, headerName);
    const { trust: common } = runtime.settings;
    if (typeof trust === 'object') this.signatures = trust;
    else this.signatures = typeof common === 'object' ? common : undefined;
  }
}

/** By its shape: the scope may be of another installed copy of this package. */
function signaturesOf(scope: Scope): TraceSignatures | undefined {
  return (scope as Partial<TraceScope>).signatures;
}
