import { IncomingMessage } from 'node:http';
import { warnOnce } from '../core/base/process-state.ts';
import type { Hold } from '../core/model/types.ts';
import { frameworkPrototype } from './framework-prototype.ts';
import { type TracedRequest, tracedRequest } from './traced-request.ts';

const prototypes = new WeakSet<object>();

/** What this package has shown as `lock` or `locks`. All else under these names is the application's. */
const ours = new WeakSet<object>();

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
      const value = name === 'lock' ? traced?.newestHold : traced?.guardedByKey;
      if (value !== undefined) ours.add(value);
      return value;
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
 * without a hold, there is no newest one: a hold of an earlier guard must not be mistaken for it. What the application has put
 * there stays, with a warning.
 */
export function exposeHolds(target: Exposing, holds: readonly Hold[]): void {
  const newest = holds.at(-1);
  if (newest === undefined) {
    if (isOurs(target.lock)) delete target.lock;
    return;
  }
  const all = withHolds(target.locks, holds);
  show(target, 'lock', newest);
  show(target, 'locks', all);
}

/** All holds by key: those that are exposed, and new ones. */
export function withHolds(exposed: unknown, holds: readonly Hold[]): ReadonlyMap<string, Hold> {
  const known = isOurs(exposed) ? [...(exposed as ReadonlyMap<string, Hold>)] : [];
  return new Map([...known, ...holds.map((hold) => [hold.key, hold] as const)]);
}

/** Whether what stands under a name may be replaced by this value. If the application uses the name, it warns once. */
export function mayReplace(name: keyof Exposing, current: unknown, value: object): boolean {
  if (current === undefined || current === value || isOurs(current)) {
    ours.add(value);
    return true;
  }
  const other = name === 'lock' ? 'locks' : 'lock';
  warnOnce(
    'LOCK_NAME_TAKEN',
    `Expected \`${name}\` of a request to be free for the hold of its guard, got a value of the application, which was left there: find the hold in \`${other}\`, or take it with \`getLock(key).acquire()\`, which re-enters`,
  );
  return false;
}

/** Whether a guard of this package has put a value there. */
export function isOurs(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ours.has(value);
}

/** Not enumerable: copies for views, logs and responses must not contain holds. */
function show(target: Exposing, name: keyof Exposing, value: object): void {
  if (!mayReplace(name, target[name], value)) return;
  Object.defineProperty(target, name, { value, configurable: true, enumerable: false, writable: true });
}
