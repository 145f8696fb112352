import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { id as rTracerId, runWithId } from 'cls-rtracer';
import type { Timer } from '../core/base/clock.ts';
import { processState, warnOnce } from '../core/base/process-state.ts';
import { LockConfigError } from '../core/model/errors/mistakes.ts';
import { type CheckedTrust, checkTrust, type TraceOptions, traceRules } from '../core/model/options.ts';
import { signatureHeader } from '../core/model/signature.ts';
import type { Hold } from '../core/model/types.ts';
import { boolean, checkOptions, text } from '../core/model/validate.ts';
import { defaultLocks } from '../core/runtime/default-locks.ts';
import { type Locks, locksRule, runtimeOf } from '../core/runtime/locks.ts';
import type { Runtime } from '../core/runtime/runtime.ts';
import { branchIn, currentScope, runInBranch } from '../core/scope/context.ts';
import { Scope } from '../core/scope/scope.ts';
import type { OwnedHold } from '../core/scope/scope-holds.ts';
import { type AdoptedTrace, adoptedTrace, branchHeader } from '../core/scope/trace-id.ts';
import { holdNames } from './hold-names.ts';
import { checkFactoryCall } from './misuse.ts';
import { type ResponseEvents, ResponseWatch } from './response/response-watch.ts';
import type { WorkOptions } from './response/work-state.ts';
import { checkRTracer } from './rtracer-version.ts';
import { ServerTiming } from './server-timing.ts';
import { isTrusted, warnOfAll, warnOfUnset } from './trust.ts';

/** The options of `traceContext`; the defaults are those of its `Locks`. */
export interface TraceContextOptions extends TraceOptions {
  /** Where this application's locks live. Default: the configured ones. */
  readonly locks?: Locks | undefined;
  /**
   * The request's property for the newest hold, if `lock` is the application's own. The property for all holds by key has the
   * name with an `s`. For TypeScript: `declare global { interface ReenlockTypes { holdName: 'hold' } }`. Default `'lock'`.
   */
  readonly holdName?: string | undefined;
  /** Whether responses show in `Server-Timing` how long guards took to get their locks: `lock;dur=12.3`. Default false. */
  readonly serverTiming?: boolean | undefined;
}

/** One request with its scope, which ends with the work on the request. Guards find it by the raw request. */
export class TracedRequest implements ResponseEvents {
  readonly scope: Scope;
  readonly watch: ResponseWatch;
  /** The hold of the guard that let the request in last, one for all of its keys; undefined if that guard had none. */
  newestHold: Hold | undefined;
  /** The request's properties for the newest hold and for all of them. */
  readonly holdNames: readonly [newest: string, all: string];
  /** The options of the `traceContext` that opened it. */
  readonly options: TraceContextOptions;
  /** Set until the response begins, if the application wants a `Server-Timing` header. */
  timing: ServerTiming | undefined;
  readonly #graceMs: number;
  /** Started when the client disconnects, stopped when the work ends. */
  #grace: Timer | undefined;

  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    socket: Socket | undefined,
    scope: Scope,
    options: TraceContextOptions,
    work: WorkOptions,
  ) {
    const { clock, settings } = scope.runtime;
    const { abortGraceMs, holdName, serverTiming } = options;
    this.scope = scope;
    this.options = options;
    this.holdNames = holdNames(holdName);
    this.timing = serverTiming === true ? new ServerTiming(clock, res) : undefined;
    this.#graceMs = abortGraceMs ?? settings.abortGraceMs;
    // Earlier middleware may have begun the response.
    if (!res.headersSent) res.setHeader(scope.headerName, scope.traceId);
    this.#endConnection(res);
    this.watch = new ResponseWatch(req, res, socket, work, this);
  }

  /**
   * The holds that its guards acquired, by key; undefined if there are none. If guards have the same key in several categories, the
   * newest hold has it, and the others are there by the names of their locks: an application that goes through them finds each.
   */
  get guardedByKey(): ReadonlyMap<string, Hold> | undefined {
    const { guarded } = this.scope;
    if (guarded.length === 0) return undefined;
    const byKey = new Map<string, OwnedHold>();
    for (const hold of guarded) {
      const former = byKey.get(hold.key);
      if (former !== undefined && former.grant.name.id !== hold.grant.name.id) byKey.set(former.grant.name.id, former);
      byKey.set(hold.key, hold);
    }
    return byKey;
  }

  onBeginning(res: ServerResponse): void {
    if (res.headersSent) return;
    // Koa's error handler removes all headers that were set before.
    const { headerName, traceId } = this.scope;
    if (!res.hasHeader(headerName)) res.setHeader(headerName, traceId);
    this.timing?.restore();
    this.timing = undefined;
    this.#endConnection(res);
  }

  onDone(): void {
    this.#grace?.cancel();
    this.scope.end();
  }

  onClientDisconnected(): void {
    this.scope.abort(new DOMException('The client disconnected', 'AbortError'));
    const why =
      'The lock was lost: the client had disconnected, and the handler must end the response then too, but did not within abortGraceMs';
    this.#grace = this.scope.runtime.clock.after(this.#graceMs, () => this.scope.abandon(why));
  }

  isOwnContext(): boolean {
    return currentScope() === this.scope;
  }

  /** If this process is about to end, the client must use another connection for its next request. */
  #endConnection(res: ServerResponse): void {
    if (this.scope.runtime.acquires.isClosed) res.shouldKeepAlive = false;
  }
}

const rules = {
  ...traceRules,
  locks: locksRule,
  holdName: text(/^[A-Za-z_$][\w$]{0,63}$/, 'the name of a property'),
  serverTiming: boolean,
};

/** Checks the options of `traceContext` once. The configured `Locks` is read with each request, because it may be replaced. */
export class Tracing {
  readonly #options: TraceContextOptions;
  readonly #ownTrust: CheckedTrust | undefined;
  readonly #ownRuntime: Runtime | undefined;
  readonly #isInProduction = process.env.NODE_ENV === 'production';
  /** The options of an outer `traceContext` that were found to agree with these. */
  #outer: TraceContextOptions | undefined;

  constructor(options: TraceContextOptions | undefined) {
    checkFactoryCall('traceContext()', options);
    this.#options = checkOptions(options, rules, 'traceContext');
    this.#ownTrust = checkTrust(this.#options.trust);
    this.#ownRuntime = this.#options.locks && runtimeOf(this.#options.locks);
    checkRTracer();
  }

  /** Opens the scope of a request, or finds the one that an outer `traceContext` has opened. Throws `LockConfigError`. */
  open(req: IncomingMessage, res: ServerResponse, work: WorkOptions): TracedRequest {
    const known = tracedRequest(req);
    if (known === undefined) return this.#begin(req, res, work);
    if (this.#ownRuntime !== undefined && known.scope.runtime !== this.#ownRuntime) {
      throw new LockConfigError('Expected every `traceContext` on one request to have the same `locks`, got two');
    }
    if (known.options !== this.#outer) this.#checkOuter(known.options);
    return known;
  }

  /** The outer one has decided already. An option that has no effect, such as a narrower `trust`, would seem to have one. */
  #checkOuter(outer: TraceContextOptions): void {
    for (const [name, value] of Object.entries(this.#options)) {
      if (name === 'locks' || isDeepStrictEqual(value, outer[name as keyof TraceContextOptions])) continue;
      throw new LockConfigError(
        `Expected every \`traceContext\` on one request to have the options of the first, got another \`${name}\`: set it on the first one`,
      );
    }
    this.#outer = outer;
  }

  #begin(req: IncomingMessage, res: ServerResponse, work: WorkOptions): TracedRequest {
    const runtime = this.#ownRuntime ?? runtimeOf(defaultLocks());
    const known = rTracerId();
    // A request that another request's handler makes in process has the id of that request, which this package set.
    if (known !== undefined && known !== currentScope()?.traceId) {
      const message =
        'Expected cls-rtracer to have no id before `traceContext`, got one, which is not used as an owner';
      warnOnce('LOCK_RTRACER', `${message}: mount \`traceContext\` first, and call \`listen\` outside of its context`);
    }
    const headerName = this.#options.headerName ?? runtime.settings.headerName;
    const socket = connectionOf(req, res);
    const adopted = this.#adopt(req, socket, headerName, runtime);
    const scope = new Scope(runtime, adopted?.traceId ?? runtime.clock.randomId(), {
      isAdopted: adopted !== undefined,
      owner: adopted?.owner,
      headerName,
      trust: this.#ownTrust,
    });
    const request = new TracedRequest(req, res, http1Socket(req, socket), scope, this.#options, work);
    processState().requests.set(req, request);
    return request;
  }

  /** The trace in the request's headers, if they are well formed and their sender is trusted. A bad header never fails a request. */
  #adopt(
    req: IncomingMessage,
    socket: Socket | undefined,
    headerName: string,
    runtime: Runtime,
  ): AdoptedTrace | undefined {
    const given = this.#ownTrust ?? runtime.settings.trust;
    // In production nobody's id is adopted by default: behind a published container port, a tunnel or a layer-4 balancer every
    // client has a private address, and nothing in the request shows it.
    const trust = given ?? (this.#isInProduction ? 'none' : 'internal');
    if (trust === 'all' && this.#isInProduction) warnOfAll();
    const { headers } = req;
    const sent = {
      id: headers[headerName.toLowerCase()],
      branch: headers[branchHeader.toLowerCase()],
      signature: headers[signatureHeader.toLowerCase()],
    };
    const bareTraceId = this.#options.bareTraceId ?? runtime.settings.bareTraceId;
    return adoptedTrace(sent, runtime, bareTraceId, trust, (rule) => {
      const isSenderTrusted = isTrusted(req, socket, rule);
      if (!isSenderTrusted && given === undefined && this.#isInProduction) warnOfUnset();
      return isSenderTrusted;
    });
  }
}

/**
 * The connection of a request. Node takes it from a request whose body is not read to its end; then the response may still
 * have it.
 */
function connectionOf(req: IncomingMessage, res: ServerResponse): Socket | undefined {
  return (req.socket as Socket | null | undefined) ?? res.socket ?? undefined;
}

/** The connection of an HTTP/1 request. A request that a test or a serverless adapter simulates may have no real one. */
function http1Socket({ httpVersionMajor }: IncomingMessage, socket: Socket | undefined): Socket | undefined {
  return httpVersionMajor === 1 && typeof socket?.on === 'function' ? socket : undefined;
}

/** Finds the traced request, also when a library has lost the async context. */
export function tracedRequest(req: IncomingMessage): TracedRequest | undefined {
  return processState().requests.get(req) as TracedRequest | undefined;
}

/** Whether the work on a request has ended: other code has responded to it. */
export function isWorkDone(req: IncomingMessage): boolean {
  return tracedRequest(req)?.watch.isDone === true;
}

/** Runs the next middleware in the scope of a request, in the calling branch, with the request's id in cls-rtracer. */
export function runTraced<T>({ scope }: TracedRequest, next: () => T): T {
  return runInBranch(branchIn(scope), () => runWithId(next, scope.traceId));
}

/** Runs a guard in the scope of its request, with its id in cls-rtracer. The async context may be that of another request. */
export function runInRequest<T>(req: IncomingMessage, run: () => T): T {
  const traced = tracedRequest(req);
  return traced === undefined || currentScope() === traced.scope ? run() : runTraced(traced, run);
}
