import type { Server } from 'node:http';
import { type SocketWatch, type WatchedSocket, watchesOf } from './connection-watch.ts';

/** Ends a server's idle connections at once, and connections with responses to traced requests once these are sent. */
export function endIdleConnections(server: Server): void {
  const again = (): void => endIdleConnections(server);
  for (const watch of withBusySocketsProtected(server, () => server.closeIdleConnections())) watch.whenIdle = again;
}

/**
 * Calls `destroyIdle`, which makes Node destroy a server's idle connections, and protects connections with responses to
 * traced requests. Node regards a connection as idle as soon as `end` was called on a response, even if data is unsent
 * or pipelined requests follow. Returns the protected connections.
 */
export function withBusySocketsProtected(server: Server, destroyIdle: () => void): readonly SocketWatch[] {
  const busy = [...watchesOf(server)].filter(({ listeners }) => listeners.size > 0);
  const restore = busy.map(({ socket }) => suppressDestroy(socket));
  try {
    destroyIdle();
  } finally {
    for (const each of restore) each();
  }
  return busy;
}

function suppressDestroy(socket: WatchedSocket): () => void {
  // Its own: that of its watch.
  const { destroy } = socket;
  socket.destroy = () => socket;
  return () => {
    socket.destroy = destroy;
  };
}
