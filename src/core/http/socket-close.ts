import type { Server } from 'node:http';
import type { Socket } from 'node:net';

interface Watched {
  readonly listeners: Set<() => void>;
  readonly close: () => void;
  readonly timeout: () => void;
  hasTimedOut: boolean;
}

const slot: unique symbol = Symbol('reenlock.socket');

type WatchedSocket = Socket & { [slot]?: Watched; server?: Server };

/**
 * Calls `listener` when the connection closes; the function that comes back ends that. One pair of listeners a socket,
 * however many requests are pipelined on it; taken off with the last of them.
 */
export function onSocketClose(socket: Socket, listener: () => void): () => void {
  const watched = watch(socket);
  watched.listeners.add(listener);
  return () => {
    watched.listeners.delete(listener);
    if (watched.listeners.size === 0) unwatch(socket, watched);
  };
}

/**
 * Whether server code destroyed the connection: neither the client ended or reset it, nor a timeout, a closing server, or
 * Node after a pipelined answer with `Connection: close` did. Where that can't be told, it is not claimed: the lock is
 * then kept for `abortGraceMs`.
 */
export function wasDestroyedHere(socket: WatchedSocket): boolean {
  const isClients = socket.readableEnded || socket.errored != null;
  // Node ends a connection before it destroys it; applications destroy it as it is.
  const isNodes = socket.writableEnded || socket[slot]?.hasTimedOut === true;
  // An application that answers broken requests itself destroys connections for what its clients sent.
  const mayBeClients = isClients || (socket.server?.listenerCount('clientError') ?? 0) > 0;
  return socket.destroyed && !mayBeClients && !isNodes && socket.server?.listening !== false;
}

function watch(socket: WatchedSocket): Watched {
  const known = socket[slot];
  if (known !== undefined) return known;
  const watched: Watched = {
    listeners: new Set(),
    close: () => {
      for (const listener of [...watched.listeners]) listener();
    },
    timeout: () => {
      watched.hasTimedOut = true;
    },
    hasTimedOut: false,
  };
  socket[slot] = watched;
  socket.on('close', watched.close);
  socket.on('timeout', watched.timeout);
  return watched;
}

function unwatch(socket: WatchedSocket, watched: Watched): void {
  socket.removeListener('close', watched.close);
  socket.removeListener('timeout', watched.timeout);
  // What a timeout did is asked for once more, right after the close.
  if (!watched.hasTimedOut) delete socket[slot];
}
