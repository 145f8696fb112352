import { IncomingMessage } from 'node:http';
import { frameworkPrototype } from '../core/http/framework-prototype.ts';
import { exposeHolds } from '../core/http/guard.ts';
import type { Hold } from '../core/index.ts';

interface Exposed {
  lock?: Hold;
  locks?: ReadonlyMap<string, Hold>;
}

const exposed = new WeakMap<object, Exposed>();
const prototypes = new WeakSet<object>();

/**
 * Puts what a guard acquired at `req.lock` and `req.locks`: by accessors on Express's own prototype of requests. Where
 * there is none, or somebody else has put properties of these names over it, on the request itself.
 */
export function exposeOnRequest(req: IncomingMessage & Exposed, holds: readonly Hold[]): void {
  share(req);
  const target = exposed.get(req) ?? {};
  exposed.set(req, target);
  exposeHolds(target, holds);
  if (req.lock !== target.lock || req.locks !== target.locks) exposeHolds(req, holds);
}

/** The next handlers were called: they may be of another copy of Express, with a prototype of its own. */
export function keepOnRequest(req: IncomingMessage & Exposed): void {
  if (!('lock' in req)) share(req);
}

function share(req: IncomingMessage): void {
  const shared = frameworkPrototype(req, IncomingMessage.prototype);
  if (shared === undefined || prototypes.has(shared) || 'lock' in shared || 'locks' in shared) return;
  Object.defineProperties(shared, { lock: accessor('lock'), locks: accessor('locks') });
  prototypes.add(shared);
}

/** What is assigned becomes the request's own. */
function accessor(name: keyof Exposed): PropertyDescriptor & ThisType<object> {
  return {
    configurable: true,
    enumerable: true,
    get() {
      return exposed.get(this)?.[name];
    },
    set(value: unknown) {
      Object.defineProperty(this, name, { value, configurable: true, enumerable: true, writable: true });
    },
  };
}
