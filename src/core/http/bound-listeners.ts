import { AsyncResource } from 'node:async_hooks';
import type { EventEmitter } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { id as rTracerId, runWithId } from 'cls-rtracer';
import { processState } from '../base/process-state.ts';
import { currentScope, runInScope } from '../scope/current-scope.ts';
import type { Scope } from '../scope/scope.ts';
import { frameworkPrototype } from './framework-prototype.ts';

/** What is known of a request, as far as its listeners need it. */
interface Traced {
  readonly scope: Scope;
  readonly watch: { readonly isOver: boolean };
}

type Listener = (...args: unknown[]) => void;
/** With `listener` as Node knows it of its own: what it stands for, to whoever asks for it or removes it. */
type Bound = Listener & { listener?: Listener };
type Event = string | symbol;
type Add = (this: EventEmitter, event: Event, listener: Listener) => unknown;
type Methods = Record<(typeof methods)[number], Add>;
type RequestOf = (emitter: object) => IncomingMessage | undefined;

const methods = ['on', 'addListener', 'prependListener', 'once', 'prependOnceListener'] as const;

/** On a prototype: what binds there. Also found by another installed copy of this package, which leaves it at that. */
const slot: unique symbol = Symbol.for('reenlock.listeners');
type Binding = Methods & { [slot]?: WeakSet<Add> };

/**
 * Whether what listens to a request or its response runs in the context of the request: its scope, and its id in
 * cls-rtracer. From the first call on it does so on the framework's prototypes, for all traced requests; not where there
 * are none, or where somebody has put a method over theirs. Never on Node's own.
 *
 * cls-rtracer's middleware does the same, but puts five functions on each request and on each response: half of what an
 * Express application of few layers does for a request comes of that. Other than with those, what else is in the async
 * context where a listener is added is there in the listener, too.
 */
export function bindsListeners(req: IncomingMessage, res: ServerResponse): boolean {
  learnListeners(req, res);
  return isBinding(req) && isBinding(res);
}

/** They may have prototypes of another copy of the framework now: from here on those bind, too. */
export function learnListeners(req: IncomingMessage, res: ServerResponse): void {
  learn(req, IncomingMessage.prototype, (emitter) => emitter as IncomingMessage);
  learn(res, ServerResponse.prototype, (emitter) => (emitter as ServerResponse).req);
}

function isBinding(emitter: object): boolean {
  const binding = (emitter as Binding)[slot];
  return binding !== undefined && methods.every((name) => binding.has((emitter as Methods)[name]));
}

function learn(emitter: object, nodes: object, requestOf: RequestOf): void {
  const shared = frameworkPrototype(emitter, nodes) as Binding | undefined;
  if (shared === undefined || shared[slot] !== undefined) return;
  Object.defineProperty(shared, slot, { value: new WeakSet() });
  const { on, prependListener } = shared;
  put(shared, ['on', 'addListener', 'prependListener'], requestOf);
  put(shared, ['once'], requestOf, on);
  put(shared, ['prependOnceListener'], requestOf, prependListener);
}

/**
 * What is to be called once is added by `ordinary`: Node's `once` would put a function of its own around the one that is
 * bound, and so no longer find the one that both stand for when it is to remove it.
 */
function put(shared: Binding, names: readonly (keyof Methods)[], requestOf: RequestOf, ordinary?: Add): void {
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

/** Undefined where the work is over: then it is nobody's, as what Node itself adds to wait for the rest of the request. */
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
