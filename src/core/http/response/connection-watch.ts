import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { asMicrotask } from '../../base/clock.ts';
import { type Listed, SwapList } from '../../base/swap-list.ts';

/** Is told once that a connection has closed. */
export interface SocketListener extends Listed {
  onSocketClosed(): void;
}

/**
 * Watches one connection with three listeners, which stay on it for its life, however many requests it carries. Adding and
 * removing them with each request would cost more than everything else that watches a request.
 */
export class SocketWatch implements Listed {
  /** Its index in the list of its server. */
  place = -1;
  readonly socket: WatchedSocket;
  readonly listeners: SwapList<SocketListener> = new SwapList();
  hasTimedOut = false;
  /** Set at the close: the last request that it received. Undefined if its parser was gone, as after CONNECT and upgrades. */
  last: IncomingMessage | undefined;
  /** Whether it has carried another request, whose code may still act on it late, while a later request is at work. */
  wasUsed: boolean;
  /** Set when the connection is to end: called each time when one response less is on its way. */
  whenIdle: (() => void) | undefined;

  constructor(socket: WatchedSocket) {
    this.socket = socket;
    this.wasUsed = socket.bytesWritten > 0;
    // Before Node's own listener, which frees the parser.
    socket.prependListener('close', () => {
      this.last = socket.parser?.incoming ?? undefined;
    });
    const others = socket.server && watchesOf(socket.server);
    // A connection that is closed already emits no more events.
    if (!socket.closed) others?.add(this);
    socket.on('close', () => {
      others?.delete(this);
      for (const listener of this.listeners) listener.onSocketClosed();
    });
    socket.on('timeout', () => {
      this.hasTimedOut = true;
    });
  }
}

const watches = new WeakMap<Server, SwapList<SocketWatch>>();

/** The open connections of a server that have carried traced requests. */
export function watchesOf(server: Server): SwapList<SocketWatch> {
  const list = watches.get(server) ?? new SwapList<SocketWatch>();
  watches.set(server, list);
  return list;
}

const slot: unique symbol = Symbol('reenlock.socket');

/** A connection of `node:http`, with properties that Node sets and does not declare. */
export type WatchedSocket = Socket & {
  [slot]?: SocketWatch;
  server?: Server;
  parser?: { incoming?: IncomingMessage | null } | null;
};

/** Calls `listener` when the connection closes, until `ignoreSocketClose`. */
export function onSocketClose(socket: WatchedSocket, listener: SocketListener): void {
  const known = socket[slot];
  const watch = known ?? new SocketWatch(socket);
  socket[slot] = watch;
  if (known !== undefined) watch.wasUsed = true;
  // A timeout while the connection was idle does not concern this request.
  if (watch.listeners.size === 0) watch.hasTimedOut = false;
  watch.listeners.add(listener);
}

/** Removes a listener. A connection that is to end does so when its last listener is removed. */
export function ignoreSocketClose(socket: WatchedSocket, listener: SocketListener): void {
  const watch = socket[slot];
  if (watch === undefined) return;
  watch.listeners.delete(listener);
  if (watch.whenIdle !== undefined) asMicrotask(watch.whenIdle);
}

/**
 * Whether the handler of this request destroyed its connection. False if the connection was ended by the client, a timeout,
 * a closing server, the handler of another request, or Node itself (after a response with `Connection: close`, or for a
 * CONNECT without a listener). Also false if the cause is unknown: the lock is then kept for `abortGraceMs`.
 */
export function wasDestroyedHere(req: IncomingMessage, res: ServerResponse): boolean {
  const { socket, upgrade }: { socket: WatchedSocket; upgrade?: boolean | null } = req;
  if (!wasDestroyedByServer(socket)) return false;
  return wasDestroyed(req) || (socket[slot]?.wasUsed === false && (upgrade === true || isAlone(socket, req, res)));
}

/** Whether the handler destroyed the request, and so the connection. Node also destroys requests, but with an error. */
function wasDestroyed(req: IncomingMessage): boolean {
  return req.aborted && req.errored === null;
}

/** Whether the first request on a connection was still the only one when it closed. */
function isAlone(socket: WatchedSocket, req: IncomingMessage, res: ServerResponse): boolean {
  // If it has no socket, a response that `traceContext` has not seen stands before it.
  return res.socket !== null && socket[slot]?.last === req;
}

function wasDestroyedByServer(socket: WatchedSocket): boolean {
  const isClients = socket.readableEnded || socket.errored != null;
  // Node ends a connection before it destroys it; applications only destroy it.
  const isNodes = socket.writableEnded || socket[slot]?.hasTimedOut === true;
  // With a `clientError` listener, the application destroys connections because of what clients have sent.
  const mayBeClients = isClients || (socket.server?.listenerCount('clientError') ?? 0) > 0;
  return socket.destroyed && !mayBeClients && !isNodes && socket.server?.listening !== false;
}
