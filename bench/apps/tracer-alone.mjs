import rTracer from 'cls-rtracer';

/** A trace id for the request, and no lock. */
export function create() {
  return { context: rTracer.expressMiddleware() };
}
