import { ServerResponse } from 'node:http';
import { frameworkPrototype } from './framework-prototype.ts';

/** Who is told of the calls by which the server's code ends a response. */
export interface EndListener {
  /** `end` is about to be handed on. */
  ending(): void;
  ended(): void;
  /** `destroy` is about to be handed on; answers what `destroyed` is to be told. */
  destroying(): boolean;
  destroyed(isByHandler: boolean): void;
}

type Method = (this: unknown, ...args: unknown[]) => unknown;
/** What is wrapped, as it is when called. */
type Original = () => Method;
type Methods = Record<'end' | 'destroy', Method | undefined>;
/** Whom a call on a response is told to; undefined is nobody. */
type Find = (res: unknown) => EndListener | undefined;

const wrappers = new WeakSet<Method>();
/** By the response, not by its request: what is answered within may be run with that, on a response that nobody sees. */
const listeners = new WeakMap<object, EndListener>();

const wrap = {
  end(original: Original, find: Find): Method {
    return function end(this: unknown, ...args) {
      const listener = find(this);
      listener?.ending();
      const returned = Reflect.apply(original(), this, args);
      listener?.ended();
      return returned;
    };
  },
  destroy(original: Original, find: Find): Method {
    return function destroy(this: unknown, ...args) {
      const listener = find(this);
      const isByHandler = listener?.destroying() === true;
      const returned = Reflect.apply(original(), this, args);
      listener?.destroyed(isByHandler);
      return returned;
    };
  },
};

/**
 * Tells the listener of every call of `end` and `destroy` on the response. The wrappers stay on, and keep arguments, `this`
 * and return value: on the framework's prototype, for all responses, where one is and nobody else has put a method over
 * its; else on the response itself. Never on Node's own prototype.
 *
 * Called again, it wraps what is not wrapped: another copy of the framework may have put its own prototype on the response
 * meanwhile. From then on that one's is wrapped for all responses.
 */
export function wrapResponse(res: ServerResponse, listener: EndListener): void {
  const own = res as unknown as Methods;
  listeners.set(res, listener);
  for (const name of ['end', 'destroy'] as const) {
    if (isWrapped(own, name)) continue;
    const shared = frameworkPrototype(res, ServerResponse.prototype) as Methods | undefined;
    if (shared !== undefined && !isWrapped(shared, name)) put(shared, name, (of) => listeners.get(of as object));
    if (!isWrapped(own, name)) put(own, name, () => listener);
  }
}

/** A response that a test made up may have no `destroy`: nothing needs to be done there. */
function isWrapped(target: Methods, name: keyof Methods): boolean {
  const method = target[name];
  return method === undefined || wrappers.has(method);
}

function put(target: Methods, name: keyof Methods, find: Find): void {
  const own = Object.hasOwn(target, name) ? (target[name] as Method) : undefined;
  // What it inherits may be replaced, or be put another prototype before, as tools of tests and of tracing do.
  const wrapper = wrap[name](
    () => own ?? ((Object.getPrototypeOf(target) as Record<string, Method>)[name] as Method),
    find,
  );
  wrappers.add(wrapper);
  target[name] = wrapper;
}
