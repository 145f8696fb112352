import { IncomingMessage } from 'node:http';
import type { Hold } from '../core/model/types.ts';
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

/** The properties where handlers find the holds that guards acquired for a request. */
export interface Exposing {
  lock?: Hold;
  locks?: ReadonlyMap<string, Hold>;
}

/**
 * Puts a guard's holds where handlers look for them: the newest hold, and all holds by key. If a guard let the request in
 * without a hold, there is no newest one: a hold of an earlier guard must not be mistaken for it.
 */
export function exposeHolds(target: Exposing, holds: readonly Hold[]): void {
  if (holds.length === 0) {
    delete target.lock;
    return;
  }
  // The application may use the name for something else.
  const all = new Map(target.locks instanceof Map ? target.locks : undefined);
  for (const hold of holds) {
    all.set(hold.key, hold);
  }
  show(target, 'lock', holds.at(-1));
  show(target, 'locks', all);
}

/** Not enumerable: copies for views, logs and responses must not contain holds. */
function show(target: Exposing, name: keyof Exposing, value: unknown): void {
  Object.defineProperty(target, name, { value, configurable: true, enumerable: false, writable: true });
}
