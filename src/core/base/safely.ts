import { inspect } from 'node:util';
import { isPromise } from './maybe-promise.ts';
import { warnOnce } from './process-state.ts';

/** Hears of errors that `safely` has stopped. */
export interface FaultListener {
  onFault(error: unknown, message: string): void;
}

export const faultCode = 'LOCK_FAULT';

/**
 * Runs a callback of this package that other code calls: Node, a framework, a client library, a timer. An error that left it
 * would end the process, or the work of that code. So each error stops here, also the rejection of a promise that the callback
 * returns: it becomes a process warning, once, and reaches the listener, each time. What the callback was to do is not done
 * then. Nothing is released by that: a lock lasts until its handler ends, until `maxHoldMs`, or until its lease ends.
 */
export function safely(run: () => unknown, listener?: FaultListener): void {
  try {
    const returned = run();
    if (isPromise(returned)) returned.then(undefined, (error: unknown) => report(error, listener));
  } catch (error) {
    report(error, listener);
  }
}

function report(error: unknown, listener: FaultListener | undefined): void {
  const message = `Expected a callback of reenlock not to fail, got an error, which was stopped: ${textOf(error)}`;
  warnOnce(faultCode, message);
  listener?.onFault(error, message);
}

/** With its stack. A thrown value may be anything, and its own `inspect` may throw. */
function textOf(error: unknown): string {
  return inspect(error, { customInspect: false, getters: false });
}
