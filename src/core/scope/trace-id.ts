import type { Clock } from '../base/clock.ts';
import type { CheckedTrust } from '../model/options.ts';
import { isAncestor } from '../model/owner.ts';
import type { TraceSignatures } from '../model/signature.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** The form of every trace id. `__proto__` is refused, since applications use ids as property names. */
export const traceIdPattern: RegExp = /^(?!__proto__$)[A-Za-z0-9._-]{1,128}$/;

/** The header with the caller's branch, as a path that begins with the trace id. */
export const branchHeader = 'X-Trace-Branch';

/** A path of branches that a caller may send: below the trace id, each part has letters, digits, dots, underscores or hyphens. */
const pathPattern = /^[A-Za-z0-9._-]{1,128}(?:\/[A-Za-z0-9._-]{1,32}){0,64}$/;
const maxPathLength = 1_024;

/** The trace id, the branch that made the call, and its signature, from a request's headers. */
export interface SentTrace {
  readonly id: unknown;
  readonly branch: unknown;
  readonly signature: unknown;
}

/** Any trust that does not verify signatures. */
export type UnsignedTrust = Exclude<CheckedTrust, TraceSignatures>;

/** The trace that a request belongs to, and its owner. */
export interface AdoptedTrace {
  readonly traceId: string;
  /** A new branch below the caller's. Undefined for a bare trace id, which is one owner. */
  readonly owner: string | undefined;
}

/**
 * The trace that a request sent, if it is well formed and its sender is trusted: by the signature of the path, or by `isTrusted`.
 * Each request is a new branch below its caller's: a call that is sent twice makes two. A bad header never fails a request: it
 * returns undefined and emits an event.
 */
export function adoptedTrace(
  { id, branch, signature }: SentTrace,
  { events, clock }: Runtime,
  bareTraceId: 'owner' | 'branch',
  trust: CheckedTrust,
  isTrusted: (trust: UnsignedTrust) => boolean,
): AdoptedTrace | undefined {
  if (id === undefined) return undefined;
  const path = branch ?? id;
  if (!isTraceId(id) || !isPath(path) || !isAncestor(id, path)) {
    events.emit('headerRefused', { reason: 'malformed' });
    return undefined;
  }
  const reason =
    typeof trust === 'object'
      ? trust.refusalOf(path, signature, clock.now().wallMs)
      : isTrusted(trust)
        ? undefined
        : 'untrusted';
  if (reason !== undefined) {
    events.emit('headerRefused', { reason });
    return undefined;
  }
  const isBare = path !== branch && bareTraceId === 'owner';
  return { traceId: id, owner: isBare ? undefined : childOf(path, clock) };
}

/** A new branch below a path. */
export function childOf(path: string, clock: Clock): string {
  return `${path}/${clock.randomId().slice(-16)}`;
}

function isTraceId(id: unknown): id is string {
  return typeof id === 'string' && traceIdPattern.test(id);
}

function isPath(path: unknown): path is string {
  return typeof path === 'string' && path.length <= maxPathLength && pathPattern.test(path);
}
