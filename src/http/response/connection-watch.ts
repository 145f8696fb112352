import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { asMicrotask } from '../../core/base/clock.ts';
import { guarded, safely } from '../../core/base/safely.ts';
import { type Listed, SwapList } from '../../core/base/swap-list.ts';

/** Events of a connection. */
export interface SocketListener extends Listed {
  /** Application code is about to destroy the connection. Called in the async context of that code. */
  onSocketDestroyCall(): void;
  /** The connection has closed; called once. */
  onSocketClosed(): void;
}

/**
 * Watches one connection with three listeners and a wrapper of `destroy`, which stay on it for its life, however many
 * requests it carries. Adding and removing them with each request would cost more than everything else that watches a request.
 */
export class SocketWatch implements Listed {
  listIndex = -1;
  readonly socket: WatchedSocket;
  readonly listeners: SwapList<SocketListener> = new SwapList();
  /** Set when the connection must end: called after each response that has ended. */
  whenIdle: (() => void) | undefined;
  /** Set while the listeners of a timeout run. They may destroy the connection, in the context of the code that set the timeout. */
  #isTimingOut = false;

  constructor(socket: WatchedSocket) {
    this.socket = socket;
    wrapDestroy(
      socket,
      guarded((error: unknown) => this.#onDestroyCall(error)),
    );
    const others = socket.server && watchesOf(socket.server);
    // A connection that is closed already emits no more events.
    if (!socket.closed) others?.add(this);
    socket.on('close', () => {
      safely(() => others?.delete(this));
      for (const listener of this.listeners) safely(() => listener.onSocketClosed());
    });
    socket.prependListener('timeout', () => {
      this.#isTimingOut = true;
      asMicrotask(() => {
        this.#isTimingOut = false;
      });
    });
  }

  /** Ignores what Node itself destroys: after an error of the connection, after it has ended the connection, or at a timeout. */
  #onDestroyCall(error: unknown): void {
    if (this.socket.destroyed || this.socket.writableEnded || this.#isTimingOut || isOfConnection(error)) return;
    for (const listener of this.listeners) listener.onSocketDestroyCall();
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

/** A connection of `node:http`, with a property that Node sets and does not declare. */
export type WatchedSocket = Socket & { [slot]?: SocketWatch; server?: Server };

/** Calls `listener` with the events of a connection, until `ignoreSocket`. */
export function watchSocket(socket: WatchedSocket, listener: SocketListener): void {
  socket[slot] ??= new SocketWatch(socket);
  socket[slot].listeners.add(listener);
}

/** Removes a listener. A connection that must end does so when its last listener is removed. */
export function ignoreSocket(socket: WatchedSocket, listener: SocketListener): void {
  const watch = socket[slot];
  if (watch === undefined) return;
  watch.listeners.delete(listener);
  if (watch.whenIdle !== undefined) asMicrotask(watch.whenIdle);
}

/** Whether Node makes such an error when a connection fails: it destroys the connection in the context of the last write. */
function isOfConnection(error: unknown): boolean {
  const { code } = Object(error) as { code?: unknown };
  return typeof code === 'string' && /^(E|HPE_)/.test(code);
}

/** Calls `onCall` before each call of `destroy`, on this connection alone: Node's own prototype is never changed. */
function wrapDestroy(socket: WatchedSocket, onCall: (error: unknown) => void): void {
  const own = Object.hasOwn(socket, 'destroy') ? socket.destroy : undefined;
  function destroy(this: Socket, ...args: [Error?]): Socket {
    onCall(args[0]);
    return Reflect.apply(own ?? (Object.getPrototypeOf(socket) as Socket).destroy, this, args) as Socket;
  }
  Object.defineProperty(socket, 'destroy', { value: destroy, configurable: true, enumerable: false, writable: true });
}
