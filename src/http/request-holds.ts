import { IncomingMessage } from 'node:http';
import { warnOnce } from '../core/base/process-state.ts';
import { ScopedBatch } from '../core/lock/batch-hold.ts';
import type { ScopedHold } from '../core/lock/hold.ts';
import type { Hold } from '../core/model/types.ts';
import { frameworkPrototype } from './framework-prototype.ts';
import { type TracedRequest, tracedRequest } from './traced-request.ts';

/** The names that have accessors, by Express's request prototype. */
const prototypes = new WeakMap<object, Set<string>>();

/** The values that this package has put on requests. Other values there are the application's. */
const ours = new WeakSet<object>();

/** Where a framework keeps the properties of a request. */
interface Place {
  readonly get: (name: string) => unknown;
  /** Undefined removes the value. */
  readonly set: (name: string, value: object | undefined) => void;
}

/**
 * Shows a guard's holds at `req.lock` and `req.locks`, by accessors on Express's own request prototype. If there is no such
 * prototype, or other code has put properties with these names over it, they become properties of the request itself.
 */
export function exposeOnRequest(req: IncomingMessage, holds: readonly ScopedHold[]): void {
  const shared = share(req);
  const traced = tracedOf(req);
  traced.newestHold = asOne(holds);
  if (shared === undefined || isHidden(req, shared, traced.holdNames)) exposeHolds(req, holds, propertiesOf(req));
}

/** Call it after `next`: another copy of Express may have run, which sets its own prototype on the request. */
export function keepOnRequest(req: IncomingMessage): void {
  share(req);
}

/** Returns the prototype that has the accessors. Adds them if necessary. */
function share(req: IncomingMessage): object | undefined {
  const shared = frameworkPrototype(req, IncomingMessage.prototype);
  if (shared === undefined) return undefined;
  const names = tracedOf(req).holdNames;
  const known = prototypes.get(shared) ?? new Set();
  const missing = names.filter((name) => !known.has(name));
  if (missing.length === 0) return shared;
  if (missing.some((name) => name in shared)) return undefined;
  for (const name of missing) Object.defineProperty(shared, name, accessor(name));
  prototypes.set(shared, new Set([...known, ...missing]));
  return shared;
}

/** Whether properties of the request hide those of the prototype. */
function isHidden(req: object, shared: object, names: readonly string[]): boolean {
  for (let next = req; next !== shared; next = Object.getPrototypeOf(next)) {
    if (names.some((name) => Object.hasOwn(next, name))) return true;
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
function accessor(name: string): PropertyDescriptor & ThisType<IncomingMessage> {
  return {
    configurable: true,
    enumerable: true,
    get() {
      const traced = nearestTraced(this);
      if (traced === undefined) return undefined;
      // Another application with the same prototype may have chosen other names.
      const [newest, all] = traced.holdNames;
      const value = name === newest ? traced.newestHold : name === all ? traced.guardedByKey : undefined;
      if (value !== undefined) ours.add(value);
      return value;
    },
    set(value: unknown) {
      Object.defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
    },
  };
}

/** The traced request of a guard that has let it in: there is one. */
function tracedOf(req: IncomingMessage): TracedRequest {
  return tracedRequest(req) as TracedRequest;
}

/**
 * Puts a guard's holds where handlers look for them: the newest guard's hold, and all holds by key. If a guard let the request in
 * without a hold, there is no newest one: a hold of an earlier guard must not be mistaken for it. A value of the application
 * stays, with a warning.
 */
export function exposeHolds(req: IncomingMessage, holds: readonly ScopedHold[], place: Place): void {
  const traced = tracedOf(req);
  const names = traced.holdNames;
  const hold = asOne(holds);
  if (hold !== undefined) show(place, names, 0, hold);
  else if (isOurs(place.get(names[0]))) place.set(names[0], undefined);
  const all = traced.guardedByKey;
  if (all !== undefined) show(place, names, 1, all);
}

/** What a guard acquired, as one hold: `waitUntil` and `release` are meant for all of its keys. */
function asOne(holds: readonly ScopedHold[]): Hold | undefined {
  return holds.length > 1
    ? new ScopedBatch(
        holds.map((hold) => hold.grant.name),
        holds,
      )
    : holds[0];
}

function show(place: Place, names: readonly [string, string], which: 0 | 1, value: object): void {
  const current = place.get(names[which]);
  if (current === undefined || current === value || isOurs(current)) {
    ours.add(value);
    place.set(names[which], value);
    return;
  }
  warnOfTaken(names, which);
}

/** Warns once that the application itself uses one of the names. */
export function warnOfTaken(names: readonly [string, string], which: 0 | 1): void {
  warnOnce(
    'LOCK_NAME_TAKEN',
    `Expected \`${names[which]}\` of a request to be free for the hold of its guard, got a value of the application, which was left there: choose another name with \`traceContext({ holdName })\`, find the hold in \`${names[1 - which]}\`, or take it with \`getLock(key).acquire()\`, which re-enters`,
  );
}

/** Whether a guard of this package has put a value there. */
function isOurs(value: unknown): boolean {
  return typeof value === 'object' && value !== null && ours.has(value);
}

/** Properties of an object. Not enumerable: copies for views, logs and responses must not contain holds. */
export function propertiesOf(target: object): Place {
  return {
    get: (name) => (target as Record<string, unknown>)[name],
    set: (name, value) => {
      if (value === undefined) delete (target as Record<string, unknown>)[name];
      else Object.defineProperty(target, name, { value, configurable: true, enumerable: false, writable: true });
    },
  };
}
