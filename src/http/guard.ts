import type { IncomingMessage, ServerResponse } from 'node:http';
import { settle } from '../core/base/maybe-promise.ts';
import { warnOnce } from '../core/base/process-state.ts';
import { acquire } from '../core/lock/acquire.ts';
import { Batch } from '../core/lock/batch.ts';
import type { ScopedHold } from '../core/lock/hold.ts';
import { setCallSite } from '../core/model/errors/at-call.ts';
import { hasCode } from '../core/model/errors/by-code.ts';
import type { LockLostError, LockStoreError } from '../core/model/errors/failures.ts';
import { isLockError, type LockError } from '../core/model/errors/lock-error.ts';
import { LockConfigError, LockScopeError } from '../core/model/errors/mistakes.ts';
import { LockAbortedError, LocksClosedError } from '../core/model/errors/refusals.ts';
import {
  assertConstantKey,
  checkedName,
  checkedNames,
  type KeyPlace,
  type LockKeys,
  type LockName,
  type RouteOf,
} from '../core/model/key.ts';
import { acquireRules, checkAcquireOptions } from '../core/model/options.ts';
import type { AcquireOptions } from '../core/model/types.ts';
import { boolean, callable, describe, oneOf, wholeNumber } from '../core/model/validate.ts';
import { cancellationError } from '../core/scope/cancellation.ts';
import { branchIn } from '../core/scope/context.ts';
import type { Scope } from '../core/scope/scope.ts';
import { checkFactoryCall } from './misuse.ts';
import type { ResponseWatch } from './response/response-watch.ts';
import { type TracedRequest, tracedRequest } from './traced-request.ts';

/** The options of a guard on every framework. */
export interface CommonGuardOptions extends AcquireOptions {
  /** The response's status if the key was not free in time, 400 to 599. Default 423. */
  readonly statusCode?: number | undefined;
  /**
   * When the hold is released: when the work has ended (`'end'`, default), or when the response is closed as well
   * (`'close'`): all of it is sent, or its client is gone.
   */
  readonly releaseOn?: 'end' | 'close' | undefined;
  /**
   * Whether a request may proceed *without the lock* if the store has failed. Only a failure of the store counts: a
   * timeout, a full queue, a lost lock, a request without a scope and a closing `Locks` still refuse it. Default false.
   *
   * While the store is down or unreachable, nothing is excluded: any number of requests run at once, also together with one
   * that another process let in with the lock. `req.lock` or `ctx.state.lock` is absent then, so there is no fence, and
   * locks that the handler itself takes still fail. A store that does not reply costs each request `storeTimeoutMs`; a
   * request that already waited in the queue waits for its whole `waitMs`. Each such request is a `failedOpen` event.
   * Do not use it where money is involved.
   */
  readonly failOpen?: boolean | undefined;
}

/** The holds of a request that a guard lets in; none if it lets the request in without the lock. */
export type Entered = readonly ScopedHold[];

/** A key, or a function that returns the keys of a request. `Call` has the framework's arguments of middleware. */
type GuardKey<Call extends readonly unknown[]> = string | ((...call: Call) => LockKeys | PromiseLike<LockKeys>);

/** The options that each framework types for itself. */
interface FrameworkOptions<Call extends readonly unknown[]> {
  readonly skip?: ((...call: Call) => boolean | PromiseLike<boolean>) | undefined;
  /** Called with the error, the framework's arguments of middleware, and `next`. */
  readonly handler?: RefusalHandler | undefined;
}

type RefusalHandler = (error: LockError, ...call: never[]) => unknown;

const rules = {
  ...acquireRules,
  statusCode: wholeNumber(400, 599),
  releaseOn: oneOf('end', 'close'),
  failOpen: boolean,
  skip: callable,
  handler: callable,
};

const guardKey: KeyPlace = {
  expected: `the guard's key to be a function of the request`,
  instead: 'lockOn((req) => req.params.id)` or, in Koa, `lockOn((ctx) => ctx.params.id)',
};

/** The part of a guard that is the same on every framework: it names the keys, acquires them, and makes refusals. */
export class RequestGuard<Call extends readonly unknown[] = readonly unknown[]> {
  readonly #key: GuardKey<Call>;
  readonly #skip: FrameworkOptions<Call>['skip'];
  readonly #handler: RefusalHandler | undefined;
  readonly #options: AcquireOptions;
  readonly #statusCode: number | undefined;
  readonly #releaseOn: 'end' | 'close';
  readonly #failOpen: boolean;

  /** Throws `LockConfigError` for bad options, and for a constant key that was meant as a template. */
  constructor(key: GuardKey<Call>, options: (CommonGuardOptions & FrameworkOptions<Call>) | undefined) {
    checkFactoryCall('lockOn(key)', key);
    if (typeof key === 'string') assertConstantKey(key, guardKey);
    else if (typeof key !== 'function') {
      throw new LockConfigError(`Expected the guard's key to be a string or a function, got ${describe(key)}`);
    }
    const checked = checkAcquireOptions(options, 'lockOn', rules);
    const { statusCode, releaseOn, failOpen, skip, handler, ...acquireOptions } = checked;
    this.#key = key;
    this.#skip = skip;
    this.#handler = handler;
    this.#options = acquireOptions;
    this.#failOpen = failOpen ?? false;
    this.#statusCode = statusCode;
    this.#releaseOn = releaseOn ?? 'end';
    if (typeof key === 'string') checkedName(key, this.#options.category);
  }

  /**
   * Acquires all keys for a request, or none. Resolves to undefined if the guard is skipped, and to no holds if the request
   * may go in without the lock. Rejects with a `LockError`, or as the application's functions do. `routeOf` names the route
   * in stacks, in warnings and on the board.
   */
  async enter(req: IncomingMessage, call: Call, routeOf?: RouteOf): Promise<Entered | undefined> {
    if (this.#skip !== undefined && (await this.#skip(...call))) return undefined;
    const keys = typeof this.#key === 'string' ? this.#key : await this.#key(...call);
    try {
      return await this.#acquire(req, keys, routeOf);
    } catch (error) {
      const route = routeOf?.();
      // No line of the application made the call.
      if (route !== undefined) setCallSite(error, { frames: [`    at lockOn (${route})`] });
      throw error;
    }
  }

  /**
   * Lets the application's handler of refusals respond to a request that `enter` has refused. Throws, or rejects with, the error
   * for the application's error handlers: if there is no handler of refusals, or if that fails.
   */
  refuse(error: unknown, res: ServerResponse, call: Call, next: unknown): unknown {
    const handler = this.#handler;
    if (!isLockError(error)) throw failureOf(error);
    if (hasCode(error, 'ERR_LOCK_TIMEOUT') && this.#statusCode !== undefined) setStatus(error, this.#statusCode);
    // Error middleware often ignores `error.headers`.
    if (!res.headersSent) for (const [name, value] of Object.entries(error.headers)) res.setHeader(name, value);
    if (handler === undefined) throw error;
    return settle(
      () => Reflect.apply(handler, undefined, [error, ...call, next]),
      (result) => result,
      (failure) => {
        throw failureOf(failure);
      },
    );
  }

  async #acquire(req: IncomingMessage, keys: LockKeys, routeOf?: RouteOf): Promise<Entered> {
    const traced = tracedRequest(req);
    // Not the scope of the async context: if a job starts a server, the job would own the locks of all requests.
    if (traced === undefined) throw noScope();
    const { scope } = traced;
    scope.nameRoute(routeOf);
    // Its middleware may have been called within a `run`, whose locks it then enters.
    const branch = branchIn(scope);
    const names = this.#names(keys, routeOf);
    const stopTiming = traced.timing?.start();
    // Most guards have one key, and don't need a batch.
    const batch = names.length === 1 ? undefined : new Batch(branch, names, this.#options, 'guard');
    const refused = (error: unknown, released: Promise<unknown>): Promise<Entered> => {
      stopTiming?.();
      return this.#refused(traced, batch?.names ?? names, error, released);
    };
    let holds: Entered;
    try {
      holds = (await batch?.acquire()) ?? [await acquire(branch, names[0] as LockName, this.#options, 'guard')];
    } catch (error) {
      return refused(error, batch?.release() ?? Promise.resolve());
    }
    // If the client disconnected right before the grant, the handler must not begin.
    const error = scope.isCancelled ? new LockAbortedError({ cause: scope.abortReason }) : lossOf(scope);
    if (error !== undefined) return refused(error, Promise.allSettled(holds.map((hold) => hold.release())));
    stopTiming?.();
    scope.addGuarded(holds);
    this.#watch(traced.watch, holds);
    return holds;
  }

  /** Rejects with the error that the client will see, or resolves to no holds if the request may go in without the lock. */
  async #refused(
    traced: TracedRequest,
    names: readonly LockName[],
    error: unknown,
    released: Promise<unknown>,
  ): Promise<Entered> {
    const { scope } = traced;
    let refusal = error;
    if (this.#failOpen && hasCode(error, 'ERR_LOCK_STORE')) {
      await released;
      refusal = this.#otherRefusal(traced, error);
      if (refusal === undefined) return enterWithoutLock(scope, names, error);
    }
    // The status 499 is for a client that is gone. Here only the guard's own signal was aborted, and the client still waits.
    if (hasCode(refusal, 'ERR_LOCK_ABORTED') && !scope.isCancelled) setStatus(refusal, 503);
    throw refusal;
  }

  #watch(watch: ResponseWatch, holds: Entered): void {
    if (this.#releaseOn === 'close') for (const hold of holds) hold.waitUntil(watch.closed);
    else watch.callBeforeEnd((res) => warnOfEventStream(res, holds));
  }

  /** A reason to refuse the request that is not the store's failure. */
  #otherRefusal(traced: TracedRequest, { key, category }: LockError): Error | undefined {
    const { scope } = traced;
    const error = cancellationError({ key, category }, scope, this.#options.signal, true) ?? lossOf(scope);
    return error ?? (scope.runtime.acquires.isClosed ? new LocksClosedError({ key, category }) : undefined);
  }

  #names(keys: LockKeys, routeOf?: RouteOf): readonly LockName[] {
    const { category } = this.#options;
    return Array.isArray(keys) ? checkedNames(keys, category, routeOf) : [checkedName(keys, category, routeOf)];
  }
}

/** The loss of a lock that an earlier guard acquired for this request, while this guard waited for another lock. */
function lossOf({ guarded }: Scope): LockLostError | undefined {
  for (const { loss } of guarded) if (loss !== undefined) return loss;
  return undefined;
}

/**
 * Warns once if an event stream was sent under a lock: waiters wait for as long as the client listens. Called when a guarded
 * response ends or is closed. Only then is its type certain, and whether the handler released the hold before. It costs a
 * request one look at a header.
 */
function warnOfEventStream(res: ServerResponse, holds: Entered): void {
  // The client may have disconnected before the response began, and before the handler released the hold.
  if (!res.headersSent) return;
  const type = res.getHeader('content-type');
  if (typeof type !== 'string' || !/^text\/event-stream\b/i.test(type)) return;
  if (!holds.some((hold) => hold.isHeld() || hold.grant.lostError !== undefined)) return;
  warnOnce(
    'LOCK_EVENT_STREAM',
    'A guarded route sent an event stream and held its lock until the stream had ended: release the lock before you respond, with `hold.release()`, or lock in the handler with `lock.run`',
  );
}

/** Reports that a request proceeds without its locks: an event each time, a warning once. */
function enterWithoutLock({ runtime, traceId }: Scope, names: readonly LockName[], error: LockStoreError): Entered {
  warnOnce('LOCK_FAILED_OPEN', 'The lock store failed: guards with `failOpen` let requests in without the lock');
  runtime.events.emit('failedOpen', { keys: names.map((name) => name.key), traceId, error });
  return [];
}

/**
 * The error that a middleware fails with. Creates one if the application's function rejected without a reason, as `reject()` does:
 * otherwise Express would go on without the lock (as for its own words 'route' and 'router'), and Koa would not respond.
 */
export function failureOf(reason: unknown): unknown {
  if (reason && reason !== 'route' && reason !== 'router') return reason;
  return new Error(
    'A function that was passed to `lockOn`, `traceContext` or `lockBoard` failed without an error: let it fail with an `Error`',
    { cause: reason },
  );
}

function setStatus(error: LockError, status: number): void {
  Object.assign(error, { status, statusCode: status });
}

function noScope(): LockScopeError {
  const message =
    'Expected `traceContext()` to run before each guard, got a request that did not pass through it: mount it first, at the top';
  warnOnce('LOCK_NO_CONTEXT', message);
  return new LockScopeError(message);
}
