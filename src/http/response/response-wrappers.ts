import { ServerResponse } from 'node:http';
import { frameworkPrototype } from '../framework-prototype.ts';

/** Called around the methods by which the server's code begins and ends a response. */
export interface EndListener {
  /** `writeHead` is called, and has done nothing yet. Node calls it, too, if the server's code does not. */
  onHeadCall(): void;
  /** `end` is called, and has done nothing yet. */
  onEndCall(): void;
  /** `end` has returned without throwing. */
  onEndReturned(): void;
  /** `destroy` is called, and has done nothing yet. Returns whether the handler is the caller, for `onDestroyReturned`. */
  onDestroyCall(error: unknown): boolean;
  /** `destroy` has returned without throwing. */
  onDestroyReturned(isByHandler: boolean): void;
}

type Method = (this: unknown, ...args: unknown[]) => unknown;
/** Returns the wrapped method, as it is at the time of the call. */
type GetOriginal = () => Method;
type Methods = Record<'writeHead' | 'end' | 'destroy', Method | undefined>;
/** Returns the listener of a response, if it has one. */
type FindListener = (res: unknown) => EndListener | undefined;

const wrappers = new WeakSet<Method>();
/** By response, not by request: middleware may run with the same request and a response that no client receives. */
const listeners = new WeakMap<object, EndListener>();

const wrap = {
  writeHead(getOriginal: GetOriginal, findListener: FindListener): Method {
    return function writeHead(this: unknown, ...args) {
      findListener(this)?.onHeadCall();
      return Reflect.apply(getOriginal(), this, args);
    };
  },
  end(getOriginal: GetOriginal, findListener: FindListener): Method {
    return function end(this: unknown, ...args) {
      const listener = findListener(this);
      listener?.onEndCall();
      const returned = Reflect.apply(getOriginal(), this, args);
      listener?.onEndReturned();
      return returned;
    };
  },
  destroy(getOriginal: GetOriginal, findListener: FindListener): Method {
    return function destroy(this: unknown, ...args) {
      const listener = findListener(this);
      const isByHandler = listener?.onDestroyCall(args[0]) === true;
      const returned = Reflect.apply(getOriginal(), this, args);
      listener?.onDestroyReturned(isByHandler);
      return returned;
    };
  },
};

/**
 * Reports every call of `writeHead`, `end` and `destroy` on the response to the listener. The wrappers stay in place, and keep
 * arguments, `this` and return value. They are put on the framework's prototype, once for all responses; if there is no
 * such prototype, or other code has put a method over the prototype's, they are put on the response itself. Node's own
 * prototype is never changed.
 *
 * May be called again, and then wraps what is not wrapped: another copy of the framework may have put its own prototype on
 * the response meanwhile. That prototype is then wrapped for all responses.
 */
export function wrapResponse(res: ServerResponse, listener: EndListener): void {
  const own = res as unknown as Methods;
  listeners.set(res, listener);
  for (const name of ['writeHead', 'end', 'destroy'] as const) {
    if (isWrapped(own, name)) continue;
    const shared = frameworkPrototype(res, ServerResponse.prototype) as Methods | undefined;
    if (shared !== undefined && !isWrapped(shared, name)) put(shared, name, (of) => listeners.get(of as object));
    if (!isWrapped(own, name)) put(own, name, () => listener);
  }
}

/** A response that a test simulates may have no `destroy`: then there is nothing to wrap. */
function isWrapped(target: Methods, name: keyof Methods): boolean {
  const method = target[name];
  return method === undefined || wrappers.has(method);
}

function put(target: Methods, name: keyof Methods, findListener: FindListener): void {
  const own = Object.hasOwn(target, name) ? (target[name] as Method) : undefined;
  // An inherited method is looked up with each call: test and tracing tools replace methods and prototypes later.
  const wrapper = wrap[name](
    () => own ?? ((Object.getPrototypeOf(target) as Record<string, Method>)[name] as Method),
    findListener,
  );
  wrappers.add(wrapper);
  target[name] = wrapper;
}
