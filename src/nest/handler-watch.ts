import type { HandlerWork } from '../http/handler-work.ts';
import { wrapMethod } from './wrapped-method.ts';

/**
 * Makes the work on a request last until its handler has settled. An interceptor alone can't see that: a timeout unsubscribes
 * from the handler's result and responds, while the handler works on.
 */
export function watchHandler(method: PropertyDescriptor, work: HandlerWork): void {
  wrapMethod(
    method,
    (handler) =>
      function watched(this: unknown, ...args: unknown[]): unknown {
        // A timeout may have responded while the pipes before it ran: then it does not run.
        return work.run(() => Reflect.apply(handler, this, args));
      },
  );
}

/** Watches the handlers of a controller's routes, also of those that it inherits. */
export function watchHandlers(controller: object, work: HandlerWork): void {
  for (let from = controller; from !== Object.prototype; from = Object.getPrototypeOf(from)) {
    for (const [name, method] of Object.entries(Object.getOwnPropertyDescriptors(from))) {
      const isOverridden = from !== controller && Object.hasOwn(controller, name);
      if (isOverridden || !isRoute(method.value)) continue;
      watchHandler(method, work);
      Object.defineProperty(controller, name, method);
    }
  }
}

/** Nest's decorators of routes leave the path on the method. */
function isRoute(method: unknown): boolean {
  return typeof method === 'function' && Reflect.hasMetadata('path', method);
}
