import type { IncomingMessage, ServerResponse } from 'node:http';
import { id as rTracerId, runWithId } from 'cls-rtracer';
import type { Timer } from '../base/clock.ts';
import { processState, warnOnce } from '../base/process-state.ts';
import { LockConfigError } from '../model/errors.ts';
import { type CheckedTrust, checkTrust, type TraceOptions, traceRules } from '../model/options.ts';
import { checkOptions, objectWith } from '../model/validate.ts';
import { defaultLocks, type Locks, runtimeOf } from '../runtime/locks.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { currentScope, runInScope } from '../scope/current-scope.ts';
import type { ScopedHold } from '../scope/hold.ts';
import { Scope } from '../scope/scope.ts';
import { traceIdPattern } from '../scope/trace.ts';
import type { ExposedHolds } from './exposed-holds.ts';
import { type ResponseEvents, ResponseWatch, type WatchOptions } from './response-watch.ts';
import { mayAdopt, warnOfAll, warnOfUnset } from './trust.ts';

/** What `traceContext` takes; the rest comes from its `Locks`. */
export interface TraceContextOptions extends TraceOptions {
  /** Where this application's locks live. Default: the configured ones. */
  readonly locks?: Locks | undefined;
}

/** One request, as its guards find it again: its scope, which ends when the work on the response does. */
export class TracedRequest implements ResponseEvents {
  readonly scope: Scope;
  readonly watch: ResponseWatch;
  /** What its guards acquired. */
  guarded: readonly ScopedHold[] | undefined;
  /** The same, where the framework has a place for that on all requests. */
  exposed: ExposedHolds | undefined;
  readonly #graceMs: number;
  /** Started when the client leaves, stopped when the work is over. */
  #grace: Timer | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, scope: Scope, graceMs: number, options: WatchOptions) {
    this.scope = scope;
    this.#graceMs = graceMs;
    // Middleware above may have begun an answer, or given it.
    if (!res.headersSent) res.setHeader(scope.headerName, scope.traceId);
    this.#endConnection(res);
    this.watch = new ResponseWatch(req, res, options, this);
  }

  ending(res: ServerResponse): void {
    if (res.headersSent) return;
    // Koa's error handler takes off all headers that were set before.
    const { headerName, traceId } = this.scope;
    if (!res.hasHeader(headerName)) res.setHeader(headerName, traceId);
    this.#endConnection(res);
  }

  over(): void {
    this.#grace?.cancel();
    this.scope.end();
  }

  left(): void {
    this.scope.abort(new DOMException('The client has left', 'AbortError'));
    const why = 'The lock was lost: its client had left, and the handler did not end within abortGraceMs';
    this.#grace = this.scope.runtime.clock.after(this.#graceMs, () => this.scope.abandon(why));
  }

  /** Where this process is about to end: the client's next request must find another one. */
  #endConnection(res: ServerResponse): void {
    if (this.scope.runtime.acquires.isClosed) res.shouldKeepAlive = false;
  }
}

const rules = { ...traceRules, locks: objectWith('a `Locks`', 'on', 'close') };

/** Checks the options of `traceContext` once. The configured `Locks` is looked up with each request: it may be replaced. */
export class Tracing {
  readonly #options: Omit<TraceContextOptions, 'trust'>;
  readonly #ownTrust: CheckedTrust | undefined;
  readonly #ownRuntime: Runtime | undefined;
  #isUsed = false;

  constructor(options: TraceContextOptions | undefined) {
    const { trust, ...others } = checkOptions(options, rules, 'traceContext');
    this.#options = others;
    this.#ownTrust = checkTrust(trust);
    this.#ownRuntime = this.#options.locks && runtimeOf(this.#options.locks);
  }

  /** Opens the scope of a request, or finds the one that an outer `traceContext` has opened. Throws `LockConfigError`. */
  open(req: IncomingMessage, res: ServerResponse, options: WatchOptions): TracedRequest {
    const known = tracedRequest(req);
    if (known === undefined) return this.#begin(req, res, options);
    if (this.#ownRuntime !== undefined && known.scope.runtime !== this.#ownRuntime) {
      throw new LockConfigError('Expected every `traceContext` on one request to have the same `locks`, got two');
    }
    return known;
  }

  #begin(req: IncomingMessage, res: ServerResponse, options: WatchOptions): TracedRequest {
    const runtime = this.#ownRuntime ?? runtimeOf(defaultLocks());
    const known = rTracerId();
    // A request that another one's handler makes in process comes with that one's, of our own making.
    if (known !== undefined && known !== currentScope()?.traceId) {
      const message = '`traceContext` must be mounted before cls-rtracer, and `listen` called outside of its context';
      warnOnce('LOCK_RTRACER', `${message}: the id that it has already is not the owner of any lock`);
    }
    const headerName = this.#options.headerName ?? runtime.settings.headerName;
    const traceparent = req.headers.traceparent;
    const adopted = this.#adopt(req, headerName, runtime);
    const scope = new Scope(runtime, adopted ?? runtime.clock.randomId(), {
      isAdopted: adopted !== undefined,
      traceparent: typeof traceparent === 'string' ? traceparent : undefined,
      headerName,
      signatures: typeof this.#ownTrust === 'object' ? this.#ownTrust : undefined,
    });
    const graceMs = this.#options.abortGraceMs ?? runtime.settings.abortGraceMs;
    const request = new TracedRequest(req, res, scope, graceMs, options);
    processState().requests.set(req, request);
    return request;
  }

  /** The id that the request came with, if it is well formed and its sender is trusted. A bad one never fails a request. */
  #adopt(req: IncomingMessage, headerName: string, runtime: Runtime): string | undefined {
    const trust = this.#ownTrust ?? runtime.settings.trust;
    if (trust === 'all' && !this.#isUsed) warnOfAll();
    this.#isUsed = true;
    const sent: unknown = req.headers[headerName.toLowerCase()];
    if (sent === undefined) return undefined;
    if (typeof sent !== 'string' || !traceIdPattern.test(sent)) {
      runtime.events.emit('headerRefused', { reason: 'malformed' });
      return undefined;
    }
    if (trust === undefined) warnOfUnset();
    if (mayAdopt(sent, req, trust ?? 'internal', runtime.clock.now().wallMs)) return sent;
    runtime.events.emit('headerRefused', { reason: 'untrusted' });
    return undefined;
  }
}

/** What `traceContext` knows of a request: also where a library has lost the async context on the way. */
export function tracedRequest(req: IncomingMessage): TracedRequest | undefined {
  return processState().requests.get(req) as TracedRequest | undefined;
}

/** Whether the work on a request is over: somebody else has answered it. */
export function isOver(req: IncomingMessage): boolean {
  return tracedRequest(req)?.watch.isOver === true;
}

/** The trace id of a request that `traceContext` has seen. */
export function traceIdOf(req: IncomingMessage): string | undefined {
  return tracedRequest(req)?.scope.traceId;
}

/** Runs what comes next in the scope of a request. */
export function runTraced<T>({ scope }: TracedRequest, next: () => T): T {
  return runInScope(scope, next);
}

/** Runs a guard in the scope of its request, with its id in cls-rtracer: the async context may be another request's. */
export function runInRequest<T>(req: IncomingMessage, run: () => T): T {
  const scope = tracedRequest(req)?.scope;
  if (scope === undefined || currentScope() === scope) return run();
  return runInScope(scope, () => runWithId(run, scope.traceId));
}
