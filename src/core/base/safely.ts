import { inspect } from 'node:util';
import { isPromise } from './maybe-promise.ts';
import { processState, warnOnce } from './process-state.ts';

/** A listener of errors that were stopped here. */
export interface FaultListener {
  onFault(error: unknown, message: string): void;
}

export const faultCode = 'LOCK_FAULT';

/**
 * Runs a callback of this package that other code calls: Node, a framework, a client library, a timer. An error that escaped
 * would end the process, or the work of that code. Therefore each error stops here, including the rejection of a promise that the
 * callback returns: it becomes a process warning, once, and reaches the listeners, each time. Such an error releases nothing: a
 * lock lasts until its handler ends, until `maxHoldMs`, or until its lease expires.
 */
export function safely(run: () => unknown): void {
  try {
    const returned = run();
    if (isPromise(returned)) inBackground(returned);
  } catch (error) {
    report(error);
  }
}

/** Wraps a listener for other code's events in `safely`. */
export function guarded<A extends readonly unknown[]>(listener: (...args: A) => unknown): (...args: A) => void {
  return (...args) => safely(() => listener(...args));
}

/** Listens to an event of other code, with a listener that is wrapped in `safely`. */
export function listenTo<A extends readonly unknown[]>(
  emitter: { on(event: string, listener: (...args: A) => void): unknown },
  event: string,
  listener: (...args: A) => unknown,
): void {
  emitter.on(event, guarded(listener));
}

/** Does not wait for work, which is not expected to reject. */
export function inBackground(work: PromiseLike<unknown> | undefined): void {
  work?.then(undefined, report);
}

/** Calls a listener with each error. Returns a function that unsubscribes. */
export function onFault(listener: FaultListener): () => void {
  const { faultListeners } = processState();
  faultListeners.add(listener);
  return () => faultListeners.delete(listener);
}

function report(error: unknown): void {
  const message = `Expected a callback of reenlock not to fail, got an error, which was stopped: ${textOf(error)}`;
  warnOnce(faultCode, message);
  for (const listener of processState().faultListeners) (listener as FaultListener).onFault(error, message);
}

/** With its stack. A thrown value may be anything, and its own `inspect` may throw. */
function textOf(error: unknown): string {
  return inspect(error, { customInspect: false, getters: false });
}
