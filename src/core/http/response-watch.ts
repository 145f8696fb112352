import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { asMicrotask } from '../base/clock.ts';
import { learnListeners } from './bound-listeners.ts';
import { ignoreSocketClose, onSocketClose, type SocketListener, wasDestroyedHere } from './connection-watch.ts';
import { type EndListener, wrapResponse } from './response-wrappers.ts';

/** What a watch tells; each at most once. */
export interface ResponseEvents {
  /** Right before the response's end is handed on; its headers may still be changed. */
  ending(res: ServerResponse): void;
  /** The work on the request is over. Called in a microtask, so that what follows in the same turn still counts. */
  over(): void;
  /** The client has left while the work goes on. */
  left(): void;
}

/** What the framework does with a request beside what its response tells. */
export interface WatchOptions {
  /** Whether middleware is awaited (Koa): the work is not over before it has settled. */
  readonly awaitsMiddleware: boolean;
  /** Whether the application answers by itself, past the framework (`ctx.respond = false`). */
  readonly isDetached?: () => boolean;
}

/**
 * Tells when the *work* on a request is over, which is neither `finish` (slow readers, pipelining and aborted HTTP/2
 * streams have their own ideas of it) nor `close` (the client's hanging up ends no handler). It is over when the server's
 * code has ended or destroyed the response, or, where a stream is piped into it, when it is closed: after an abort,
 * pipes call neither. The wrappers stay on, and keep arguments, `this` and return value.
 */
export class ResponseWatch implements SocketListener, EndListener {
  /** Among those who are told of the connection's close. */
  place = -1;
  /**
   * Until nothing more is to come of them. Watches are found by their requests, in a `WeakMap`: what it leads to outlives
   * the collector's quick rounds, and requests with all that they have would.
   */
  #open:
    | { readonly req: IncomingMessage; readonly res: ServerResponse; readonly socket: Socket | undefined }
    | undefined;
  readonly #events: ResponseEvents;
  readonly #options: WatchOptions;
  #isEnded = false;
  #isClosed = false;
  #isOver = false;
  /** Piped into the response. Most responses have none. */
  #sources: Set<Readable> | undefined;
  #running = 0;
  #hasFailed = false;
  #hasBegun = false;
  #closed: Promise<void> | undefined;
  #onClosed: (() => void) | undefined;
  /** Most responses have one, of their one guard. */
  #beforeEnd: ((res: ServerResponse) => void)[] | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, options: WatchOptions, events: ResponseEvents) {
    const socket = socketOf(req);
    this.#open = { req, res, socket };
    this.#events = events;
    this.#options = options;
    wrapResponse(res, this);
    res.on('pipe', (source) => this.#pipe(source));
    res.on('close', () => this.#close());
    // A pipelined response that is aborted may emit neither `finish` nor `close`.
    if (socket !== undefined) onSocketClose(socket, this);
    // That of a HEAD request on HTTP/2 emits `close` only once it was ended; its head alone closes the stream.
    else if (req.method === 'HEAD') streamOf(req)?.on('close', () => this.#close());
    // Answered, or gone, before it could be watched: no event is left to come.
    if (res.writableEnded || (socket ?? streamOf(req))?.destroyed === true) this.#close();
  }

  /** Told by the connection. */
  socketClosed(): void {
    this.#close(true);
  }

  /** Told by the response. */
  ending(): void {
    if (this.#open === undefined) return;
    this.#events.ending(this.#open.res);
    this.#tellEnd(this.#open.res);
  }

  /** Told by the response. */
  ended(): void {
    this.#isEnded = true;
    this.#look();
  }

  /**
   * Told by the response. With the socket gone before, it is Node that cleans up behind an aborted response, not the
   * handler: it destroys the queued ones as its first act at the connection's close, also those that are destroyed already.
   */
  destroying(): boolean {
    return this.#open === undefined || !this.#open.req.socket?.destroyed;
  }

  /** Told by the response. */
  destroyed(isByHandler: boolean): void {
    if (isByHandler) this.#isEnded = true;
    this.#look();
  }

  /** Whether the work is over. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Resolves when the response or its connection is closed. */
  get closed(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      if (this.#isClosed) resolve();
      else this.#onClosed = resolve;
      // Of a response that was made up, nothing may say that it is closed.
      if (this.#open?.socket === undefined) this.#open?.res.once('finish', resolve);
    });
    return this.#closed;
  }

  /** Calls `look` once: right before the response's end is handed on, or when it is closed without one. */
  beforeEnd(look: (res: ServerResponse) => void): void {
    if (this.#isEnded) return;
    this.#beforeEnd ??= [];
    this.#beforeEnd.push(look);
  }

  /** Middleware begins; the function that comes back, to be called once, says that it has settled, and whether by an error. */
  enter(): (failed: boolean) => void {
    this.#hasBegun = true;
    this.#running += 1;
    return (failed) => {
      this.#running -= 1;
      this.#hasFailed = failed;
      this.#look();
    };
  }

  #tellEnd(res: ServerResponse): void {
    const looks = this.#beforeEnd;
    this.#beforeEnd = undefined;
    if (looks !== undefined) for (const look of looks) look(res);
  }

  /** Told by the response, or by the connection, that it is closed. */
  #close(isByConnection = false): void {
    if (this.#open === undefined) return;
    const { req, res, socket } = this.#open;
    // Destroyed in its queue: what Node does to it when the connection closes is still to come.
    if (socket === undefined || isByConnection || !isQueued(socket, res)) {
      if (socket !== undefined) ignoreSocketClose(socket, this);
      this.#open = undefined;
    }
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#tellEnd(res);
    const wasEnded = this.#isEnded || this.#wasEndedUnseen(req, res);
    this.#isEnded = wasEnded || (socket !== undefined && wasDestroyedHere(req, res)) || this.#isPiped();
    this.#sources = undefined;
    this.#look();
    // Middleware that works on after the answer has nobody to wait for it any more.
    if (!this.#isOver && !wasEnded) this.#events.left();
    this.#onClosed?.();
  }

  /**
   * Another copy of the framework may have put prototypes of its own on it: what it answered first was not seen. Nor is what
   * a handler answers by its stream of HTTP/2.
   */
  #wasEndedUnseen(req: IncomingMessage, res: ServerResponse): boolean {
    wrapResponse(res, this);
    learnListeners(req, res);
    return res.writableEnded === true || wasEndedPast(req);
  }

  #pipe(source: Readable): void {
    if (!this.#isClosed) {
      this.#sources ??= this.#watchUnpipe();
      this.#sources.add(source);
      return;
    }
    // Nothing more comes of a pipe into a response that is gone.
    this.#isEnded = true;
    this.#look();
  }

  /** What its handler takes off again leaves the end to that handler; what Node takes off a gone response does not. */
  #watchUnpipe(): Set<Readable> {
    this.#open?.res.on('unpipe', (source: Readable) => {
      const req = this.#open?.req;
      if (req !== undefined && (socketOf(req) ?? streamOf(req))?.destroyed !== true) this.#sources?.delete(source);
    });
    return new Set();
  }

  /** Whether a pipe is at work: one whose source has ended has left the response's end to somebody else. */
  #isPiped(): boolean {
    return this.#sources !== undefined && [...this.#sources].some((source) => source.readableEnded !== true);
  }

  #look(): void {
    if (this.#isOver || !this.#isDone()) return;
    this.#isOver = true;
    asMicrotask(() => this.#events.over());
  }

  #isDone(): boolean {
    if (!this.#options.awaitsMiddleware) return this.#isEnded;
    if (!this.#hasBegun || this.#running > 0) return false;
    return this.#hasFailed || this.#isEnded || (this.#isClosed && this.#options.isDetached?.() !== true);
  }
}

/** The connection of HTTP/1; a request that a test or a serverless adapter made up may have no real one. */
function socketOf({ httpVersionMajor, socket }: IncomingMessage): Socket | undefined {
  return httpVersionMajor === 1 && typeof socket?.on === 'function' ? socket : undefined;
}

/** Whether the response stands behind another one on its connection, which is gone. */
function isQueued(socket: Socket, res: ServerResponse): boolean {
  return socket.destroyed && res.socket === null;
}

/** Of a request of HTTP/2. */
function streamOf(req: IncomingMessage): ServerHttp2Stream | undefined {
  return (req as { stream?: ServerHttp2Stream }).stream;
}

/** Whether the server ended the stream, and not by the head alone of an answer that has no body: that may come early. */
function wasEndedPast(req: IncomingMessage): boolean {
  const stream = streamOf(req);
  if (stream?.writableEnded !== true || stream.aborted || req.method === 'HEAD') return false;
  return !bodiless.has(stream.sentHeaders?.[':status']);
}

const bodiless = new Set<unknown>([204, 205, 304]);
