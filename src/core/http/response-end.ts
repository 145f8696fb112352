import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { onSocketClose, wasDestroyedHere } from './socket-close.ts';

/** What a watch tells; each at most once. */
export interface ResponseEvents {
  /** Right before the response's end is handed on; its headers may still be changed. */
  ending(): void;
  /** The work on the request is over. Called in a microtask, so that what follows in the same turn still counts. */
  over(): void;
  /** The client has left while the work goes on. */
  left(): void;
}

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
export class ResponseWatch {
  readonly #events: ResponseEvents;
  readonly #options: WatchOptions;
  #isEnded = false;
  #isClosed = false;
  #isSocketClosed = false;
  #isOver = false;
  /** Piped into the response. Most responses have none. */
  #sources: Set<Readable> | undefined;
  #running = 0;
  #hasFailed = false;
  #begun: boolean;
  #closed: Promise<void> | undefined;
  #onClosed: (() => void) | undefined;
  /** Most responses have one, of their one guard. */
  #beforeEnd: ((res: ServerResponse) => void)[] | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, options: WatchOptions, events: ResponseEvents) {
    this.#events = events;
    this.#options = options;
    this.#begun = !options.awaitsMiddleware;
    this.#wrapEnd(res);
    this.#wrapDestroy(req, res);
    res.on('pipe', (source) => this.#pipe(source));
    // A request that a test or a serverless adapter made up may have no real socket.
    const isHttp1 = req.httpVersionMajor === 1 && typeof req.socket?.on === 'function';
    const close = (): void => {
      if (this.#isClosed) return;
      // Destroyed in its queue: what Node does to it when the connection closes is still to come.
      if (this.#isSocketClosed || !isHttp1 || !isQueued(req, res)) forget();
      this.#tellEnd(res);
      this.#close(isHttp1 && wasDestroyedHere(req.socket));
    };
    res.on('close', close);
    // A pipelined response that is aborted may emit neither `finish` nor `close`.
    const socketClosed = (): void => {
      this.#isSocketClosed = true;
      forget();
      close();
    };
    const forget = isHttp1 ? onSocketClose(req.socket, socketClosed) : () => {};
    // Gone before it could be watched: no event is left to come.
    if (isHttp1 ? req.socket.destroyed : streamOf(req)?.destroyed === true) queueMicrotask(close);
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
    });
    return this.#closed;
  }

  /** Calls `look` once: right before the response's end is handed on, or when it is closed without one. */
  beforeEnd(look: (res: ServerResponse) => void): void {
    if (this.#isEnded || this.#isClosed) return;
    this.#beforeEnd ??= [];
    this.#beforeEnd.push(look);
  }

  /** Middleware begins; the function that comes back says that it has settled, and whether by an error. */
  enter(): (failed: boolean) => void {
    this.#begun = true;
    this.#running += 1;
    let isIn = true;
    return (failed) => {
      if (!isIn) return;
      isIn = false;
      this.#running -= 1;
      this.#hasFailed = failed;
      this.#look();
    };
  }

  #wrapEnd(res: ServerResponse): void {
    const watch = this;
    const end = res.end;
    res.end = function (this: unknown, ...args: unknown[]): ServerResponse {
      watch.#events.ending();
      if (watch.#beforeEnd !== undefined) watch.#tellEnd(res);
      const returned = Reflect.apply(end, this, args);
      watch.#isEnded = true;
      watch.#look();
      return returned;
    };
  }

  #tellEnd(res: ServerResponse): void {
    const looks = this.#beforeEnd;
    this.#beforeEnd = undefined;
    if (looks !== undefined) for (const look of looks) look(res);
  }

  #wrapDestroy(req: IncomingMessage, res: ServerResponse): void {
    const watch = this;
    const { destroy } = res;
    // HTTP/2's compatibility response has none.
    if (typeof destroy !== 'function') return;
    res.destroy = function (this: unknown, ...args: unknown[]): ServerResponse {
      // With the socket gone before, it is Node that cleans up behind an aborted response, not the handler: it destroys the
      // queued ones as its first act at the connection's close, also those that are destroyed already.
      const isClosed = watch.#isClosed && (watch.#isSocketClosed || !isQueued(req, res));
      const isByHandler = isClosed || !req.socket?.destroyed;
      const returned = Reflect.apply(destroy, this, args);
      if (isByHandler) watch.#isEnded = true;
      watch.#look();
      return returned;
    };
  }

  #close(isByServer: boolean): void {
    this.#isClosed = true;
    const wasEnded = this.#isEnded;
    if (isByServer || this.#isPiped()) this.#isEnded = true;
    this.#look();
    // Middleware that works on after the answer has nobody to wait for it any more.
    if (!this.#isOver && !wasEnded) this.#events.left();
    this.#onClosed?.();
  }

  #pipe(source: Readable): void {
    this.#sources ??= new Set();
    this.#sources.add(source);
    // Nothing more comes of a pipe into a response that is gone.
    if (!this.#isClosed) return;
    this.#isEnded = true;
    this.#look();
  }

  /** Whether a pipe is at work: one whose source has ended has left the response's end to somebody else. */
  #isPiped(): boolean {
    return this.#sources !== undefined && [...this.#sources].some((source) => source.readableEnded !== true);
  }

  #look(): void {
    if (this.#isOver || !this.#isDone()) return;
    this.#isOver = true;
    queueMicrotask(() => this.#events.over());
  }

  #isDone(): boolean {
    if (!this.#options.awaitsMiddleware) return this.#isEnded;
    if (!this.#begun || this.#running > 0) return false;
    return this.#hasFailed || this.#isEnded || (this.#isClosed && this.#options.isDetached?.() !== true);
  }
}

/** Whether the response stands behind another one on its connection, which is gone. */
function isQueued(req: IncomingMessage, res: ServerResponse): boolean {
  return res.socket === null && req.socket.destroyed;
}

/** Of a request of HTTP/2. */
function streamOf(req: IncomingMessage): { destroyed: boolean } | undefined {
  return (req as { stream?: { destroyed: boolean } }).stream;
}
