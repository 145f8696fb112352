import type { Runtime } from '../runtime/runtime.ts';

/** The form of every trace id. `__proto__` is refused, since applications use ids as property names. */
export const traceIdPattern: RegExp = /^(?!__proto__$)[A-Za-z0-9._-]{1,128}$/;

/**
 * The id that a request sent, if it is well formed and `mayAdopt` allows it. A bad id never fails a request: then it is
 * undefined, and an event.
 */
export function adoptedId(
  sent: unknown,
  { events }: Runtime,
  mayAdopt: (traceId: string) => boolean,
): string | undefined {
  if (sent === undefined) return undefined;
  if (typeof sent !== 'string' || !traceIdPattern.test(sent)) {
    events.emit('headerRefused', { reason: 'malformed' });
    return undefined;
  }
  if (mayAdopt(sent)) return sent;
  events.emit('headerRefused', { reason: 'untrusted' });
  return undefined;
}
