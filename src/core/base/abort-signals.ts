/** Who listens to a signal, and the one listener on it that tells them. */
interface Audience {
  readonly listeners: Set<() => void>;
  readonly tell: () => void;
}

const audiences = new WeakMap<AbortSignal, Audience>();

/**
 * Calls `listener` when a signal is aborted; the function that comes back ends that. However many listen, the signal has
 * one listener: that of a server's shutdown is everybody's, and Node takes more than ten on one signal for a leak.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const { listeners, tell } = audiences.get(signal) ?? open(signal);
  // The same function may be added twice.
  const own = (): void => listener();
  listeners.add(own);
  return () => {
    listeners.delete(own);
    if (listeners.size > 0 || audiences.get(signal)?.listeners !== listeners) return;
    signal.removeEventListener('abort', tell);
    audiences.delete(signal);
  };
}

function open(signal: AbortSignal): Audience {
  const listeners = new Set<() => void>();
  const tell = (): void => {
    for (const listener of [...listeners]) listener();
  };
  const audience = { listeners, tell };
  audiences.set(signal, audience);
  signal.addEventListener('abort', tell);
  return audience;
}
