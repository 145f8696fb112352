import { IncomingMessage } from 'node:http';
import type { Hold } from '../core/model/types.ts';
import { type Exposing, exposeHolds } from './exposed-holds.ts';
import { frameworkPrototype } from './framework-prototype.ts';
import { type TracedRequest, tracedRequest } from './traced-request.ts';

const prototypes = new WeakSet<object>();

/**
 * Shows a guard's holds at `req.lock` and `req.locks`, by accessors on Express's own request prototype. If there is no such
 * prototype, or other code has put properties with these names over it, they become properties of the request itself.
 */
export function exposeOnRequest(req: IncomingMessage & Exposing, holds: readonly Hold[]): void {
  const shared = share(req);
  // Never undefined: the guard has found it before.
  (tracedRequest(req) as TracedRequest).newestHold = holds.at(-1);
  if (shared === undefined || isHidden(req, shared)) exposeHolds(req, holds);
}

/** Call it after `next`: another copy of Express may have run, which sets its own prototype on the request. */
export function keepOnRequest(req: IncomingMessage): void {
  share(req);
}

/** Returns the prototype that has the accessors. Adds them if necessary. */
function share(req: IncomingMessage): object | undefined {
  const shared = frameworkPrototype(req, IncomingMessage.prototype);
  if (shared === undefined || prototypes.has(shared)) return shared;
  if ('lock' in shared || 'locks' in shared) return undefined;
  Object.defineProperties(shared, { lock: accessor('lock'), locks: accessor('locks') });
  prototypes.add(shared);
  return shared;
}

/** Whether properties of the request hide those of the prototype. */
function isHidden(req: object, shared: object): boolean {
  for (let next = req; next !== shared; next = Object.getPrototypeOf(next)) {
    if (Object.hasOwn(next, 'lock') || Object.hasOwn(next, 'locks')) return true;
  }
  return false;
}

/** Finds the traced request, also if middleware has derived another object from it by `Object.create`. */
function nearestTraced(req: IncomingMessage): TracedRequest | undefined {
  let traced: TracedRequest | undefined;
  for (let next = req; next !== null && traced === undefined; next = Object.getPrototypeOf(next)) {
    traced = tracedRequest(next);
  }
  return traced;
}

/** An assigned value becomes a property of the request itself. */
function accessor(name: keyof Exposing): PropertyDescriptor & ThisType<IncomingMessage> {
  return {
    configurable: true,
    enumerable: true,
    get() {
      const traced = nearestTraced(this);
      return name === 'lock' ? traced?.newestHold : traced?.guardedByKey;
    },
    set(value: unknown) {
      Object.defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
    },
  };
}
