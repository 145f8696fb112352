import { AsyncResource } from 'node:async_hooks';
import type { EventEmitter } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { id as rTracerId, runWithId } from 'cls-rtracer';
import { processState } from '../core/base/process-state.ts';
import { currentScope, runInScope } from '../core/scope/current-scope.ts';
import type { Scope } from '../core/scope/scope.ts';
import { frameworkPrototype } from './framework-prototype.ts';

/** The part of a traced request that its listeners need. */
interface Traced {
  readonly scope: Scope;
  readonly watch: { readonly isOver: boolean };
}

type Listener = (...args: unknown[]) => void;
/** Has the `listener` property that Node uses, too: the function that it wraps, so that `listeners()` and `off()` find it. */
type Bound = Listener & { listener?: Listener };
type Event = string | symbol;
type Add = (this: EventEmitter, event: Event, listener: Listener) => unknown;
type Methods = Record<(typeof methods)[number], Add>;
type RequestOf = (emitter: object) => IncomingMessage | undefined;

const methods = ['on', 'addListener', 'prependListener', 'once', 'prependOnceListener'] as const;

/** On a prototype: the patched methods. Another installed copy of this package finds it as well, and then patches nothing. */
const slot: unique symbol = Symbol.for('reenlock.listeners');
type Patched = Methods & { [slot]?: WeakSet<Add> };

/**
 * Makes listeners of a request and its response run in the context of the request: in its scope, and with its id in
 * cls-rtracer. To do so it patches the methods of the framework's prototypes once, for all traced requests. Returns whether
 * both are patched: false if the framework has no prototypes, or other code has put a method over theirs. Node's own
 * prototypes are never changed. May be called again: another copy of the framework may have set its own prototypes.
 *
 * cls-rtracer's middleware has the same effect, but puts five functions on each request and on each response, which is half
 * of the work that an Express application of few layers does for a request. Another difference: here a listener also keeps
 * the other values of the async context in which it was added.
 */
export function patchListeners(req: IncomingMessage, res: ServerResponse): boolean {
  if (isPatched(req) && isPatched(res)) return true;
  patchEmitter(req, IncomingMessage.prototype, (emitter) => emitter as IncomingMessage);
  patchEmitter(res, ServerResponse.prototype, (emitter) => (emitter as ServerResponse).req);
  return isPatched(req) && isPatched(res);
}

function isPatched(emitter: object): boolean {
  const patched = (emitter as Patched)[slot];
  return patched !== undefined && methods.every((name) => patched.has((emitter as Methods)[name]));
}

function patchEmitter(emitter: object, nodes: object, requestOf: RequestOf): void {
  const shared = frameworkPrototype(emitter, nodes) as Patched | undefined;
  if (shared === undefined || shared[slot] !== undefined) return;
  Object.defineProperty(shared, slot, { value: new WeakSet() });
  const { on, prependListener } = shared;
  put(shared, ['on', 'addListener', 'prependListener'], requestOf);
  put(shared, ['once'], requestOf, on);
  put(shared, ['prependOnceListener'], requestOf, prependListener);
}

/**
 * A listener that is to be called once is added by `ordinary`. Node's `once` would wrap the bound function again, and then
 * could not find the original listener in order to remove it.
 */
function put(shared: Patched, names: readonly (keyof Methods)[], requestOf: RequestOf, ordinary?: Add): void {
  for (const name of names) {
    const original = shared[name];
    const add: Add = function (this, event, listener) {
      const run = bound(requestOf(this), this, listener);
      if (run === undefined) return original.call(this, event, listener);
      if (ordinary === undefined) return original.call(this, event, run);
      return ordinary.call(this, event, onlyOnce(this, event, run));
    };
    shared[slot]?.add(add);
    shared[name] = add;
  }
}

/** Undefined if the work is over: such a listener belongs to no request, like those that Node adds to read the rest of a body. */
function bound(req: IncomingMessage | undefined, emitter: EventEmitter, listener: Listener): Bound | undefined {
  const traced = req && (processState().requests.get(req) as Traced | undefined);
  if (traced === undefined || traced.watch.isOver || typeof listener !== 'function') return undefined;
  const resource = resourceOf(traced.scope);
  const run: Bound = resource.runInAsyncScope.bind(resource, listener, emitter);
  run.listener = listener;
  return run;
}

function onlyOnce(emitter: EventEmitter, event: Event, run: Bound): Bound {
  let isOver = false;
  const first: Bound = (...args) => {
    if (isOver) return;
    isOver = true;
    emitter.removeListener(event, first);
    return run(...args);
  };
  first.listener = run.listener as Listener;
  return first;
}

function resourceOf(scope: Scope): AsyncResource {
  const { traceId } = scope;
  const create = (): AsyncResource => new AsyncResource('reenlock');
  const createTraced = (): AsyncResource => (rTracerId() === traceId ? create() : runWithId(create, traceId));
  return currentScope() === scope ? createTraced() : runInScope(scope, createTraced);
}
