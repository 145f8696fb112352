import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { asMicrotask } from '../core/base/clock.ts';

/**
 * A response that nobody has begun, for code that responds after an `await`. Meanwhile other code may have responded, such as a
 * timeout, or the client may have disconnected: check `isOpen` again in the same tick in which you respond.
 */
export class OpenResponse {
  readonly #res: ServerResponse & { readonly stream?: ServerHttp2Stream };
  /** Kept, because Node may set `req.socket` to null. */
  readonly #socket: Socket | null;

  constructor(req: IncomingMessage, res: ServerResponse) {
    this.#res = res;
    this.#socket = req.httpVersionMajor === 1 ? req.socket : null;
  }

  /** Whether you may respond: no other code has, and the client is there. */
  get isOpen(): boolean {
    const { headersSent, writableEnded, destroyed, stream } = this.#res;
    return !headersSent && !writableEnded && !destroyed && (this.#socket ?? stream)?.destroyed !== true;
  }

  /**
   * Destroys a stream when the response closes, also if other code responded and nobody reads the stream. A response that waits
   * behind another on its connection may never close: then the connection's close counts.
   */
  destroyAfter(source: Readable): void {
    // Not before listeners that the framework adds later: they may end the stream in their own way.
    const destroy = (): void => asMicrotask(() => void source.destroy());
    this.#res.on('close', destroy);
    this.#socket?.on('close', destroy);
    // The connection may carry further requests.
    source.on('close', () => this.#socket?.off('close', destroy));
  }
}
