import { AsyncResource } from 'node:async_hooks';
import { IncomingMessage, ServerResponse } from 'node:http';
import { id as rTracerId, runWithId } from 'cls-rtracer';
import { currentScope, processState, runInScope } from '../context.ts';
import type { Scope } from '../scope.ts';
import { frameworkPrototype } from './framework-prototype.ts';

/** What is known of a request, as far as its listeners need it. */
interface Traced {
  readonly scope: Scope;
  readonly watch: { readonly isOver: boolean };
}

type Listener = (...args: unknown[]) => void;
type Add = (this: object, event: string | symbol, listener: Listener) => unknown;
type Methods = Record<(typeof methods)[number], Add>;
type RequestOf = (emitter: object) => IncomingMessage | undefined;

/** All others (`once`, `prependOnceListener`) call one of these. */
const methods = ['on', 'addListener', 'prependListener'] as const;

const prototypes = new WeakSet<object>();
const binding = new WeakSet<Add>();

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
  const { on, addListener, prependListener } = emitter as Methods;
  return binding.has(on) && binding.has(addListener) && binding.has(prependListener);
}

function learn(emitter: object, nodes: object, requestOf: RequestOf): void {
  const shared = frameworkPrototype(emitter, nodes);
  if (shared === undefined || prototypes.has(shared)) return;
  prototypes.add(shared);
  for (const name of methods) put(shared as Methods, name, requestOf);
}

function put(shared: Methods, name: keyof Methods, requestOf: RequestOf): void {
  const original = shared[name];
  const add: Add = function (this, event, listener) {
    return original.call(this, event, bound(requestOf(this), this, listener));
  };
  binding.add(add);
  shared[name] = add;
}

/** When the work is over, what listens is nobody's: Node itself then waits for what is left of the request. */
function bound(req: IncomingMessage | undefined, emitter: object, listener: Listener): Listener {
  const traced = req && (processState().requests.get(req) as Traced | undefined);
  if (traced === undefined || traced.watch.isOver || typeof listener !== 'function') return listener;
  const resource = resourceOf(traced.scope);
  const run: Listener & { listener?: Listener } = resource.runInAsyncScope.bind(resource, listener, emitter);
  // Node looks there for what it is to remove.
  run.listener = listener;
  return run;
}

function resourceOf(scope: Scope): AsyncResource {
  const { traceId } = scope;
  const create = (): AsyncResource => new AsyncResource('reenlock');
  const createTraced = (): AsyncResource => (rTracerId() === traceId ? create() : runWithId(create, traceId));
  return currentScope() === scope ? createTraced() : runInScope(scope, createTraced);
}
