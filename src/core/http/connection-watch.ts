import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { asMicrotask } from '../base/clock.ts';
import { type Listed, SwapList } from '../base/swap-list.ts';

/** Who is told once that a connection has closed. */
export interface SocketListener extends Listed {
  socketClosed(): void;
}

/**
 * What is known of one connection: with three listeners, which stay on it for its life, however many requests come
 * on it. Putting them on and taking them off with each request costs more than all else that a request is watched with.
 */
export class SocketWatch implements Listed {
  /** Among those of its server. */
  place = -1;
  readonly socket: WatchedSocket;
  readonly listeners: SwapList<SocketListener> = new SwapList();
  hasTimedOut = false;
  /** As it closed: the last request that came on it. None where its parser was gone, as after CONNECT and upgrades. */
  last: IncomingMessage | undefined;
  /** Whether another request was answered on it, or is watched: what its code does late, it does to those after it, too. */
  wasUsed: boolean;
  /** Where it is to end: called when something less is on its way. */
  whenIdle: (() => void) | undefined;

  constructor(socket: WatchedSocket) {
    this.socket = socket;
    this.wasUsed = socket.bytesWritten > 0;
    // Before Node's own listener, which gives the parser back.
    socket.prependListener('close', () => {
      this.last = socket.parser?.incoming ?? undefined;
    });
    const others = socket.server && watchesOf(socket.server);
    // Of one that is closed already no event is to come.
    if (!socket.closed) others?.add(this);
    socket.on('close', () => {
      others?.delete(this);
      for (const listener of this.listeners) listener.socketClosed();
    });
    socket.on('timeout', () => {
      this.hasTimedOut = true;
    });
  }
}

const watches = new WeakMap<Server, SwapList<SocketWatch>>();

/** The connections of a server on which traced requests came, while they last. */
export function watchesOf(server: Server): SwapList<SocketWatch> {
  const list = watches.get(server) ?? new SwapList<SocketWatch>();
  watches.set(server, list);
  return list;
}

const slot: unique symbol = Symbol('reenlock.socket');

/** A connection of `node:http`, with what Node keeps on it and does not declare. */
export type WatchedSocket = Socket & {
  [slot]?: SocketWatch;
  server?: Server;
  parser?: { incoming?: IncomingMessage | null } | null;
};

/** Tells `listener` when the connection closes, until `ignoreSocketClose`. */
export function onSocketClose(socket: WatchedSocket, listener: SocketListener): void {
  const known = socket[slot];
  const watch = known ?? new SocketWatch(socket);
  socket[slot] = watch;
  if (known !== undefined) watch.wasUsed = true;
  // What came while it was idle says nothing of this request.
  if (watch.listeners.size === 0) watch.hasTimedOut = false;
  watch.listeners.add(listener);
}

/** Tells `listener` no more. A connection that is to end does so with the last one. */
export function ignoreSocketClose(socket: WatchedSocket, listener: SocketListener): void {
  const watch = socket[slot];
  if (watch === undefined) return;
  watch.listeners.delete(listener);
  if (watch.whenIdle !== undefined) asMicrotask(watch.whenIdle);
}

/**
 * Whether the handler of this request destroyed its connection: neither the client ended or reset it, nor a timeout, a
 * closing server, the handler of another request on it, or Node did, after an answer with `Connection: close` or for a
 * CONNECT that nobody listens for. Where that can't be told, it is not claimed: the lock is then kept for `abortGraceMs`.
 */
export function wasDestroyedHere(req: IncomingMessage, res: ServerResponse): boolean {
  const { socket, upgrade }: { socket: WatchedSocket; upgrade?: boolean | null } = req;
  if (!wasDestroyedByServer(socket)) return false;
  return wasDestroyed(req) || (socket[slot]?.wasUsed === false && (upgrade === true || isAlone(socket, req, res)));
}

/** Whether its handler destroyed the request, and so the connection; Node does it with an error, when that has closed. */
function wasDestroyed(req: IncomingMessage): boolean {
  return req.aborted && req.errored === null;
}

/** Whether the first request on a connection was the only one as it closed. */
function isAlone(socket: WatchedSocket, req: IncomingMessage, res: ServerResponse): boolean {
  // Else one that `traceContext` has not seen is to be answered before it.
  return res.socket !== null && socket[slot]?.last === req;
}

function wasDestroyedByServer(socket: WatchedSocket): boolean {
  const isClients = socket.readableEnded || socket.errored != null;
  // Node ends a connection before it destroys it; applications destroy it as it is.
  const isNodes = socket.writableEnded || socket[slot]?.hasTimedOut === true;
  // An application that answers broken requests itself destroys connections for what its clients sent.
  const mayBeClients = isClients || (socket.server?.listenerCount('clientError') ?? 0) > 0;
  return socket.destroyed && !mayBeClients && !isNodes && socket.server?.listening !== false;
}
