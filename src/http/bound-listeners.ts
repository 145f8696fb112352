import { AsyncResource } from 'node:async_hooks';
import type { EventEmitter } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { id as rTracerId, runWithId } from 'cls-rtracer';
import { processState } from '../core/base/process-state.ts';
import { branchIn, currentBranch, runInBranch } from '../core/scope/context.ts';
import type { Scope } from '../core/scope/scope.ts';
import { frameworkPrototype } from './framework-prototype.ts';

/** The part of a traced request that its listeners need. */
interface Traced {
  readonly scope: Scope;
  readonly watch: { readonly isDone: boolean };
}

type Listener = (...args: unknown[]) => void;
/** Has the `listener` property that Node uses, too: the function that it wraps, so that `listeners()` and `off()` find it. */
type Bound = Listener & { listener?: Listener; [slot]?: true };
type Event = string | symbol;
type Add = { (this: EventEmitter, event: Event, listener: Listener): unknown; [slot]?: true };
type Methods = Record<(typeof methods)[number], Add>;
/** A listener that a tool knows as the bound function. */
type Added = { readonly event: Event; readonly listener: Listener; readonly run: Bound };
type RequestOf = (emitter: object) => IncomingMessage | undefined;

const methods = ['on', 'addListener', 'prependListener', 'once', 'prependOnceListener'] as const;
const removers = ['off', 'removeListener'] as const;

/**
 * On a patched prototype, request or response, on each of its patched methods, and on bound listeners. Another installed copy of
 * this package finds it as well, and then patches nothing.
 */
const slot: unique symbol = Symbol.for('reenlock.listeners');
type Patched = Methods & { [slot]?: true };

/**
 * Makes listeners of a request and its response run in the context of the request: in the branch of its scope in which they were
 * added, and with its id in cls-rtracer. A listener also keeps the other values of the async context in which it was added. It can
 * be removed as if it were not bound, even after `once`: with cls-rtracer's own middleware, it could not.
 *
 * If the framework has prototypes, their methods are patched once, for all traced requests. Otherwise, or if other code has put
 * a method over theirs, the request or response itself is patched. Node's own prototypes are never changed.
 */
export function bindListeners(req: IncomingMessage, res: ServerResponse): void {
  patchPrototypes(req, res);
  for (const emitter of [req, res]) {
    if (isPatched(emitter)) continue;
    // A tool that has replaced the methods of this emitter.
    const isForeign = Object.hasOwn(emitter, 'removeListener');
    patch(emitter, () => req, isForeign && !Object.hasOwn(emitter, slot) ? putRemovers(emitter) : undefined);
  }
}

/**
 * Patches the prototypes alone. May be called again: another copy of the framework may have set its own prototypes on the
 * request and the response.
 */
export function patchPrototypes(req: IncomingMessage, res: ServerResponse): void {
  const [ofRequest, ofResponse] = [IncomingMessage.prototype, ServerResponse.prototype];
  if (!isPatched(req)) patch(frameworkPrototype(req, ofRequest), (emitter) => emitter as IncomingMessage);
  if (!isPatched(res)) patch(frameworkPrototype(res, ofResponse), (emitter) => (emitter as ServerResponse).req);
}

function isPatched(emitter: object): boolean {
  return methods.every((name) => {
    const method: Add | undefined = (emitter as Methods)[name];
    // A simulated response may have none.
    return method === undefined || method[slot] === true;
  });
}

function patch(target: object | undefined, requestOf: RequestOf, added?: Added[]): void {
  if (target === undefined || Object.hasOwn(target, slot)) return;
  const patched = target as Patched;
  const { on, prependListener } = patched;
  Object.defineProperty(target, slot, { value: true });
  put(patched, ['on', 'addListener', 'prependListener'], requestOf, added);
  put(patched, ['once'], requestOf, added, on);
  put(patched, ['prependOnceListener'], requestOf, added, prependListener);
}

/**
 * A listener for one call is added by `ordinary`. Node's `once` would wrap the bound function again, and then could not find the
 * original listener to remove it.
 */
function put(
  target: Methods,
  names: readonly (keyof Methods)[],
  requestOf: RequestOf,
  added: Added[] | undefined,
  ordinary?: Add,
): void {
  for (const name of names) {
    const original: Add | undefined = target[name];
    if (original === undefined) continue;
    const add: Add = function (this, event, listener) {
      const run = bound(requestOf(this), this, listener);
      if (run === undefined) return original.call(this, event, listener);
      const first = ordinary === undefined ? run : onlyOnce(this, event, run);
      added?.push({ event, listener, run: first });
      return (ordinary ?? original).call(this, event, first);
    };
    add[slot] = true;
    target[name] = add;
  }
}

/**
 * Removes bound listeners through a tool that has replaced these methods on the emitter, as OpenTelemetry does: it knows
 * listeners by the bound function. Returns the list of added listeners.
 */
function putRemovers(emitter: EventEmitter): Added[] {
  const added: Added[] = [];
  for (const name of removers) {
    const original = emitter[name] as Add;
    emitter[name] = function (this: EventEmitter, event: Event, listener: Listener) {
      const index = added.findLastIndex((each) => each.event === event && [each.listener, each.run].includes(listener));
      const [known] = index < 0 ? [] : added.splice(index, 1);
      return original.call(this, event, known?.run ?? listener);
    } as typeof emitter.off;
  }
  return added;
}

/**
 * Undefined after the work: such a listener belongs to no request, like those that Node adds to read the rest of a body. Also if it
 * is bound already, by a method that calls this one: a listener that is bound twice could not be removed.
 */
function bound(req: IncomingMessage | undefined, emitter: EventEmitter, listener: Listener): Bound | undefined {
  const traced = req && (processState().requests.get(req) as Traced | undefined);
  if (traced === undefined || traced.watch.isDone || typeof listener !== 'function') return undefined;
  if ((listener as Bound)[slot] === true) return undefined;
  const resource = resourceOf(traced.scope);
  const run: Bound = resource.runInAsyncScope.bind(resource, listener, emitter);
  run.listener = listener;
  run[slot] = true;
  return run;
}

function onlyOnce(emitter: EventEmitter, event: Event, run: Bound): Bound {
  let wasCalled = false;
  const first: Bound = (...args) => {
    if (wasCalled) return;
    wasCalled = true;
    emitter.removeListener(event, first);
    return run(...args);
  };
  first.listener = run.listener as Listener;
  first[slot] = true;
  return first;
}

function resourceOf(scope: Scope): AsyncResource {
  const { traceId } = scope;
  const create = (): AsyncResource => new AsyncResource('reenlock');
  const createTraced = (): AsyncResource => (rTracerId() === traceId ? create() : runWithId(create, traceId));
  const branch = branchIn(scope);
  return currentBranch() === branch ? createTraced() : runInBranch(branch, createTraced);
}
