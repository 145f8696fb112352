import { safely } from './safely.ts';

/** The listeners of one signal, and the one listener on it that calls them. */
interface Audience {
  readonly listeners: Set<() => void>;
  readonly notify: () => void;
}

const audiences = new WeakMap<AbortSignal, Audience>();

/**
 * Calls `listener` when a signal is aborted. Returns a function that unsubscribes. The signal itself gets only one listener:
 * all requests may share a shutdown signal, and Node warns of a leak beyond ten listeners.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const { listeners, notify } = audiences.get(signal) ?? open(signal);
  // The same function may be added twice.
  const own = (): void => listener();
  listeners.add(own);
  return () => {
    listeners.delete(own);
    if (listeners.size > 0 || audiences.get(signal)?.listeners !== listeners) return;
    signal.removeEventListener('abort', notify);
    audiences.delete(signal);
  };
}

function open(signal: AbortSignal): Audience {
  const listeners = new Set<() => void>();
  const notify = (): void => {
    for (const listener of [...listeners]) safely(listener);
  };
  const audience = { listeners, notify };
  audiences.set(signal, audience);
  signal.addEventListener('abort', notify);
  return audience;
}
