import { IncomingMessage } from 'node:http';
import { ExposedHolds, type Exposing, exposeHolds } from '../core/http/exposed-holds.ts';
import { frameworkPrototype } from '../core/http/framework-prototype.ts';
import { type TracedRequest, tracedRequest } from '../core/http/traced-request.ts';
import type { Hold } from '../core/index.ts';

const prototypes = new WeakSet<object>();

/**
 * Puts what a guard acquired at `req.lock` and `req.locks`: by accessors on Express's own prototype of requests. Where
 * there is none, or somebody else has put properties of these names over it, on the request itself.
 */
export function exposeOnRequest(req: IncomingMessage & Exposing, holds: readonly Hold[]): void {
  const shared = share(req);
  // The guard has found it before.
  const traced = tracedRequest(req) as TracedRequest;
  traced.exposed ??= new ExposedHolds();
  traced.exposed.add(holds);
  if (shared === undefined || isHidden(req, shared)) exposeHolds(req, holds);
}

/** To be called after `next`: the handlers may be another copy of Express's, which put a prototype of its own on the request. */
export function keepOnRequest(req: IncomingMessage): void {
  share(req);
}

/** The prototype that has the accessors. */
function share(req: IncomingMessage): object | undefined {
  const shared = frameworkPrototype(req, IncomingMessage.prototype);
  if (shared === undefined || prototypes.has(shared)) return shared;
  if ('lock' in shared || 'locks' in shared) return undefined;
  Object.defineProperties(shared, { lock: accessor('lock'), locks: accessor('locks') });
  prototypes.add(shared);
  return shared;
}

/** Whether a request does not show what its prototype has. */
function isHidden(req: object, shared: object): boolean {
  for (let next = req; next !== shared; next = Object.getPrototypeOf(next)) {
    if (Object.hasOwn(next, 'lock') || Object.hasOwn(next, 'locks')) return true;
  }
  return false;
}

/** The request itself, or, where it was made by `Object.create`, as some middleware does, the one that it was made of. */
function nearestTraced(req: IncomingMessage): TracedRequest | undefined {
  let traced: TracedRequest | undefined;
  for (let next = req; next !== null && traced === undefined; next = Object.getPrototypeOf(next)) {
    traced = tracedRequest(next);
  }
  return traced;
}

/** What is assigned becomes the request's own. */
function accessor(name: keyof Exposing): PropertyDescriptor & ThisType<IncomingMessage> {
  return {
    configurable: true,
    enumerable: true,
    get() {
      return nearestTraced(this)?.exposed?.[name];
    },
    set(value: unknown) {
      Object.defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
    },
  };
}
