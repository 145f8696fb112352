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

/**
 * Whether a header is a `traceparent` as W3C Trace Context describes it; one of a later version may have more at its end. A
 * malformed one is not sent on.
 */
export function isTraceparent(header: unknown): header is string {
  return typeof header === 'string' && traceparentPattern.test(header);
}

const traceparentPattern =
  /^(?!ff)(?!00-.{53})[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[\x21-\x7e]{1,200})?$/;
