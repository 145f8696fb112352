import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { asMicrotask } from '../../base/clock.ts';
import { patchListeners } from '../bound-listeners.ts';
import { ignoreSocketClose, onSocketClose, type SocketListener, wasDestroyedHere } from './connection-watch.ts';
import { type EndListener, wrapResponse } from './response-wrappers.ts';
import { type WorkOptions, WorkState } from './work-state.ts';

/** What a watch reports; each at most once. */
export interface ResponseEvents {
  /** The response is about to begin; its headers may still be changed. */
  onBeginning(res: ServerResponse): void;
  /** The work on the request is over. Called in a microtask, so that code right after the response still counts. */
  onOver(): void;
  /** The client has left while the work goes on. */
  onClientLeft(): void;
}

/**
 * Reports when the *work* on a request is over. That is neither `finish` (slow readers, pipelining and aborted HTTP/2
 * streams delay or drop it) nor `close` (a client that hangs up does not end the handler). The work is over when the
 * server's code has ended or destroyed the response. If a stream is piped into the response, its close counts as well,
 * because after an abort `pipe` calls neither method.
 */
export class ResponseWatch implements SocketListener, EndListener {
  /** Its index in the connection's list of listeners. */
  place = -1;
  /**
   * Set until no further event can come. A watch is found by its request in a `WeakMap`, and everything that the watch
   * refers to survives the collector's quick rounds: so it must not refer to a request that is done.
   */
  #open:
    | { readonly req: IncomingMessage; readonly res: ServerResponse; readonly socket: Socket | undefined }
    | undefined;
  readonly #events: ResponseEvents;
  readonly #work: WorkState;
  /** Streams that were piped into the response. Most responses have none. */
  #sources: Set<Readable> | undefined;
  #closed: Promise<void> | undefined;
  #resolveClosed: (() => void) | undefined;
  /** Most responses have one, for their only guard. */
  #beforeEnd: ((res: ServerResponse) => void)[] | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, options: WorkOptions, events: ResponseEvents) {
    const socket = socketOf(req);
    this.#open = { req, res, socket };
    this.#events = events;
    this.#work = new WorkState(options, () => asMicrotask(() => events.onOver()));
    wrapResponse(res, this);
    res.on('pipe', (source) => this.#onPipe(source));
    res.on('close', () => this.#onClose(false));
    // A pipelined response that is aborted may emit neither `finish` nor `close`.
    if (socket !== undefined) onSocketClose(socket, this);
    // On HTTP/2, the response to a HEAD request emits `close` only after its end, but its headers close the stream.
    else if (req.method === 'HEAD') streamOf(req)?.on('close', () => this.#onClose(false));
    // The response ended, or the client left, before this watch: no event will come.
    if (res.writableEnded || (socket ?? streamOf(req))?.destroyed === true) this.#onClose(false);
  }

  /** Called by the connection. */
  onSocketClosed(): void {
    this.#onClose(true);
  }

  /** Called by the response's wrapper. */
  onHeadCall(): void {
    if (this.#open !== undefined) this.#events.onBeginning(this.#open.res);
  }

  /** Called by the response's wrapper. */
  onEndCall(): void {
    if (this.#open !== undefined) this.#runBeforeEnd(this.#open.res);
  }

  /** Called by the response's wrapper. */
  onEndReturned(): void {
    this.#work.end();
  }

  /**
   * Called by the response's wrapper. If the socket is already destroyed, Node itself destroys the response, not the
   * handler: when a connection closes, Node first destroys all queued responses, even those that are destroyed already.
   */
  onDestroyCall(): boolean {
    return this.#open === undefined || !this.#open.req.socket?.destroyed;
  }

  /** Called by the response's wrapper. */
  onDestroyReturned(isByHandler: boolean): void {
    if (isByHandler) this.#work.end();
  }

  /** Whether the work is over. */
  get isOver(): boolean {
    return this.#work.phase === 'over';
  }

  /** Resolves when the response or its connection is closed. */
  get closed(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#resolveClosed = resolve;
      // A simulated response may never emit `close`.
      if (this.#open?.socket === undefined) this.#open?.res.once('finish', resolve);
    });
    return this.#closed;
  }

  /** Calls `callback` once: right before the response ends, or when it closes without an end. */
  callBeforeEnd(callback: (res: ServerResponse) => void): void {
    const { phase } = this.#work;
    if (phase === 'ended' || phase === 'over') return;
    this.#beforeEnd ??= [];
    this.#beforeEnd.push(callback);
  }

  /** Middleware begins. `leave` must be called once when it has settled. */
  enter(): void {
    this.#work.enter();
  }

  /** Middleware has settled. */
  leave(hasFailed: boolean): void {
    this.#work.leave(hasFailed);
  }

  #runBeforeEnd(res: ServerResponse): void {
    const callbacks = this.#beforeEnd;
    this.#beforeEnd = undefined;
    if (callbacks !== undefined) for (const callback of callbacks) callback(res);
  }

  #onClose(isByConnection: boolean): void {
    if (this.#open === undefined) return;
    const { req, res, socket } = this.#open;
    // If it was destroyed in its queue, Node will destroy it again when the connection closes.
    if (socket === undefined || isByConnection || !isQueued(socket, res)) {
      if (socket !== undefined) ignoreSocketClose(socket, this);
      this.#open = undefined;
    }
    this.#runBeforeEnd(res);
    if (this.#work.phase === 'open') this.#onCloseUnended(req, res, socket);
    this.#closed ??= alreadyClosed;
    this.#resolveClosed?.();
  }

  /** The response is closed, and no call that ended it was seen. */
  #onCloseUnended(req: IncomingMessage, res: ServerResponse, socket: Socket | undefined): void {
    // Another copy of the framework may have replaced the prototypes, so that the watch has missed the end.
    wrapResponse(res, this);
    patchListeners(req, res);
    const wasEnded = res.writableEnded === true || hasStreamEnded(req);
    if (wasEnded || (socket !== undefined && wasDestroyedHere(req, res)) || this.#isPiped()) this.#work.end();
    else this.#work.close();
    this.#sources = undefined;
    // Middleware that works on after the response has ended has no client to lose.
    if (!wasEnded && !this.isOver) this.#events.onClientLeft();
  }

  #onPipe(source: Readable): void {
    const { phase } = this.#work;
    // A pipe into a closed response does nothing more.
    if (phase === 'closed') this.#work.end();
    if (phase !== 'open') return;
    this.#sources ??= this.#watchUnpipe();
    this.#sources.add(source);
  }

  /** If the handler unpipes a source, the handler must end the response. Node unpipes the sources of a response that is gone. */
  #watchUnpipe(): Set<Readable> {
    this.#open?.res.on('unpipe', (source: Readable) => {
      const req = this.#open?.req;
      if (req !== undefined && (socketOf(req) ?? streamOf(req))?.destroyed !== true) this.#sources?.delete(source);
    });
    return new Set();
  }

  /** Whether a pipe is at work. If a source has ended and the response has not, other code must end it. */
  #isPiped(): boolean {
    return this.#sources !== undefined && [...this.#sources].some((source) => source.readableEnded !== true);
  }
}

const alreadyClosed: Promise<void> = Promise.resolve();

/** The connection of an HTTP/1 request. A request that a test or a serverless adapter simulates may have no real one. */
function socketOf({ httpVersionMajor, socket }: IncomingMessage): Socket | undefined {
  return httpVersionMajor === 1 && typeof socket?.on === 'function' ? socket : undefined;
}

/** Whether the connection is gone while another response stands before this one. */
function isQueued(socket: Socket, res: ServerResponse): boolean {
  return socket.destroyed && res.socket === null;
}

/** The stream of an HTTP/2 request. */
function streamOf(req: IncomingMessage): ServerHttp2Stream | undefined {
  return (req as { stream?: ServerHttp2Stream }).stream;
}

/**
 * Whether the server has ended the HTTP/2 stream. If the response has no body, its headers alone end the stream, maybe long
 * before the handler does: that does not count.
 */
function hasStreamEnded(req: IncomingMessage): boolean {
  const stream = streamOf(req);
  if (stream?.writableEnded !== true || stream.aborted || req.method === 'HEAD') return false;
  return !bodiless.has(stream.sentHeaders?.[':status']);
}

const bodiless = new Set<unknown>([204, 205, 304]);
