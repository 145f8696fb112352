import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { asMicrotask } from '../../core/base/clock.ts';
import { type MaybePromise, settle } from '../../core/base/maybe-promise.ts';
import { guarded, safely } from '../../core/base/safely.ts';
import { patchPrototypes } from '../bound-listeners.ts';
import { ignoreSocket, type SocketListener, watchSocket } from './connection-watch.ts';
import { type EndListener, wrapResponse } from './response-wrappers.ts';
import { type WorkOptions, WorkState } from './work-state.ts';

/** Events of a watch, each at most once, and its question. */
export interface ResponseEvents {
  /** The response is about to begin; its headers may still be changed. */
  onBeginning(res: ServerResponse): void;
  /** The work on the request has ended. Called in a microtask: code right after the response still belongs to the work. */
  onDone(): void;
  /** The client disconnected while the work goes on. */
  onClientDisconnected(): void;
  /** Whether the running code belongs to the request. */
  isOwnContext(): boolean;
}

/**
 * Reports when the *work* on a request ends. That is neither `finish` (slow readers, pipelining and aborted HTTP/2 streams
 * delay or drop it) nor `close` (a client that hangs up does not end the handler). The work ends when the server's code ends or
 * destroys the response, or destroys the connection, in the async context of the request: other code of the server may do so
 * while the handler works on. If a stream is piped into the response, its close counts as well, because after an abort `pipe`
 * calls neither method.
 *
 * The watch keeps the request's connection: Node takes it from a request whose body is not read to its end.
 */
export class ResponseWatch implements SocketListener, EndListener {
  listIndex = -1;
  /**
   * Set while events are possible. A watch is found by its request in a `WeakMap`, and everything that the watch refers to
   * survives the collector's quick rounds: it must not refer to a request that is done.
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
  /** Most guarded responses have one. */
  #beforeEnd: ((res: ServerResponse) => void)[] | undefined;

  /** Whether code of this request has destroyed the connection. */
  #isDestroyedHere = false;

  /** `socket` is the connection of the request, if that is known. */
  constructor(
    req: IncomingMessage,
    res: ServerResponse,
    socket: Socket | undefined,
    options: WorkOptions,
    events: ResponseEvents,
  ) {
    this.#open = { req, res, socket };
    this.#events = events;
    this.#work = new WorkState(options, () => asMicrotask(() => events.onDone()));
    wrapResponse(res, this);
    res.on(
      'pipe',
      guarded((source: Readable) => this.#onPipe(source)),
    );
    const onClose = guarded(() => this.#onClose());
    res.on('close', onClose);
    // A pipelined response that is aborted may emit neither `finish` nor `close`.
    if (socket !== undefined) watchSocket(socket, this);
    // On HTTP/2, the response to a HEAD request emits `close` only after its end, but its headers close the stream.
    else if (req.method === 'HEAD') streamOf(req)?.on('close', onClose);
    // If the response ended, or the client disconnected, before this watch, no event follows.
    if (res.writableEnded || (socket ?? streamOf(req))?.destroyed === true) this.#onClose();
  }

  /** Called by the connection. */
  onSocketDestroyCall(): void {
    if (this.#events.isOwnContext()) this.#isDestroyedHere = true;
  }

  /** Called by the connection. */
  onSocketClosed(): void {
    safely(() => this.#onClose());
  }

  /** Called by the response's wrapper. */
  onHeadCall(): void {
    const res = this.#open?.res;
    if (res !== undefined) safely(() => this.#events.onBeginning(res));
  }

  /** Called by the response's wrapper. */
  onEndCall(): void {
    const res = this.#open?.res;
    if (res !== undefined) safely(() => this.#runBeforeEnd(res));
  }

  /** Called by the response's wrapper. */
  onEndReturned(): void {
    safely(() => this.#work.end());
  }

  /**
   * Called by the response's wrapper. Node itself also destroys responses: queued ones when their connection has closed, and, in
   * the context of the handler, those on HTTP/2 to which it writes after the client has disconnected.
   */
  onDestroyCall(error: unknown): boolean {
    return !isOfClosedStream(error) && this.#events.isOwnContext();
  }

  /** Called by the response's wrapper. */
  onDestroyReturned(isByHandler: boolean): void {
    if (isByHandler) safely(() => this.#work.end());
  }

  /** Whether the server's code has ended the response; the work may go on. */
  get isEnded(): boolean {
    return this.#work.phase === 'ended' || this.isDone;
  }

  /** Whether the work has ended. */
  get isDone(): boolean {
    return this.#work.phase === 'done';
  }

  /** Resolves when the response or its connection is closed. */
  get closed(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#resolveClosed = resolve;
      // A simulated response may never emit `close`.
      this.#open?.res.once('finish', resolve);
    });
    return this.#closed;
  }

  /** Calls `callback` once: right before the response ends, or when it closes without an end. */
  callBeforeEnd(callback: (res: ServerResponse) => void): void {
    const { phase } = this.#work;
    if (phase === 'ended' || phase === 'done') return;
    this.#beforeEnd ??= [];
    this.#beforeEnd.push(callback);
  }

  /**
   * Runs middleware or a handler as a part of the work, which then lasts until that has settled: a timeout may respond while it
   * works. Returns a value if it does.
   */
  run<T>(part: () => MaybePromise<T>): MaybePromise<T> {
    this.#work.enter();
    return settle(
      part,
      (result) => {
        this.#work.leave(false);
        return result;
      },
      (error) => {
        this.#work.leave(true);
        throw error;
      },
    );
  }

  #runBeforeEnd(res: ServerResponse): void {
    const callbacks = this.#beforeEnd;
    this.#beforeEnd = undefined;
    if (callbacks !== undefined) for (const callback of callbacks) callback(res);
  }

  #onClose(): void {
    if (this.#open === undefined) return;
    const { req, res, socket } = this.#open;
    if (socket !== undefined) ignoreSocket(socket, this);
    this.#open = undefined;
    this.#runBeforeEnd(res);
    if (this.#work.phase === 'open') this.#onCloseUnended(req, res);
    this.#closed ??= alreadyClosed;
    this.#resolveClosed?.();
  }

  /** The response is closed, without a known call that ended it. */
  #onCloseUnended(req: IncomingMessage, res: ServerResponse): void {
    // Another copy of the framework may have replaced the prototypes, so that the watch has missed the end.
    wrapResponse(res, this);
    patchPrototypes(req, res);
    const wasEnded = res.writableEnded === true || hasStreamEnded(req);
    if (wasEnded || this.#isDestroyedHere || this.#isPiped()) this.#work.end();
    else this.#work.close();
    this.#sources = undefined;
    // After the end of the response, middleware that works on has no client to lose.
    if (!wasEnded && !this.isDone) this.#events.onClientDisconnected();
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
    const unpiped = (source: Readable): void => {
      if (this.#open === undefined) return;
      const { req, socket } = this.#open;
      if ((socket ?? streamOf(req))?.destroyed !== true) this.#sources?.delete(source);
    };
    this.#open?.res.on('unpipe', guarded(unpiped));
    return new Set();
  }

  /** Whether a pipe is at work. If a source has ended and the response has not, other code must end it. */
  #isPiped(): boolean {
    return this.#sources !== undefined && [...this.#sources].some((source) => source.readableEnded !== true);
  }
}

const alreadyClosed: Promise<void> = Promise.resolve();

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

/** Whether an error is that of a call on an HTTP/2 stream that is closed. */
function isOfClosedStream(error: unknown): boolean {
  return (error as { code?: unknown } | null | undefined)?.code === 'ERR_HTTP2_INVALID_STREAM';
}

const bodiless = new Set<unknown>([204, 205, 304]);
