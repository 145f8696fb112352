import type { Server } from 'node:http';
import { type SocketWatch, type WatchedSocket, watchesOf } from './connection-watch.ts';

/** Ends a server's idle connections, and those on which answers to traced requests are on their way once these are out. */
export function endIdleConnections(server: Server): void {
  const again = (): void => endIdleConnections(server);
  for (const watch of sparingAnswers(server, () => server.closeIdleConnections())) watch.whenIdle = again;
}

/**
 * Calls what has Node destroy a server's idle connections, and keeps it from those on which answers to traced requests are
 * on their way: Node takes one for idle once `end` was called on the response, whatever is left of it, and behind it.
 */
export function sparingAnswers(server: Server, destroyIdle: () => void): readonly SocketWatch[] {
  const busy = [...watchesOf(server)].filter(({ listeners }) => listeners.size > 0);
  const restore = busy.map(({ socket }) => undestroyable(socket));
  try {
    destroyIdle();
  } finally {
    for (const each of restore) each();
  }
  return busy;
}

function undestroyable(socket: WatchedSocket): () => void {
  const own = Object.getOwnPropertyDescriptor(socket, 'destroy');
  socket.destroy = () => socket;
  return () => {
    Reflect.deleteProperty(socket, 'destroy');
    if (own !== undefined) Object.defineProperty(socket, 'destroy', own);
  };
}
