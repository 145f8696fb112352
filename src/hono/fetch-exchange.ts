import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Context } from 'hono';
import { FetchResponse } from './fetch-response.ts';

const exchanges = new WeakMap<object, FetchExchange>();

/** Finds the exchange of a context that no server of `node:http` serves. Undefined for what is no context of Hono. */
export function fetchExchangeOf(c: Context | undefined): FetchExchange | undefined {
  const raw: Partial<Request> | undefined = c?.req?.raw;
  if (c === undefined || typeof raw?.headers?.get !== 'function') return undefined;
  const known = exchanges.get(c);
  if (known !== undefined) return known;
  const exchange = new FetchExchange(raw as Request);
  exchanges.set(c, exchange);
  return exchange;
}

/**
 * A request that a server gives to `app.fetch` alone: Bun's, Deno's, or `app.request` of a test. The rules for the life of a request
 * read Node's request and response. This has what they read, and passes on what happens to the `Response` of the application.
 */
export class FetchExchange {
  readonly req: IncomingMessage;
  readonly #response = new FetchResponse();
  readonly #request: Request;
  #hasBegun = false;

  constructor(request: Request) {
    const { method, url } = request;
    // Without a connection the peer is unknown: no address is trusted.
    const req = { method, url, headers: Object.fromEntries(request.headers), httpVersionMajor: 1 };
    this.#request = request;
    this.req = req as unknown as IncomingMessage;
  }

  get res(): ServerResponse {
    return this.#response as unknown as ServerResponse;
  }

  /** Runs the handlers. The response ends with its body, or at once if it has none. */
  async run(c: Context, next: () => Promise<void>): Promise<void> {
    // A `traceContext` below another.
    if (this.#hasBegun) return next();
    this.#hasBegun = true;
    this.#watchClient();
    await next();
    this.#respond(c);
  }

  #watchClient(): void {
    const { signal } = this.#request;
    if (signal.aborted) this.#response.abort();
    // The signal is the request's own, and goes with it.
    else signal.addEventListener('abort', () => this.#response.abort(), { once: true });
  }

  #respond(c: Context): void {
    const { status, statusText, headers, body, bodyUsed } = c.res;
    const type = headers.get('Content-Type');
    if (type !== null) this.#response.setHeader('Content-Type', type);
    this.#response.writeHead();
    // Other code has sent it, such as a timeout; or it has no constructor, as that of a WebSocket's handshake.
    const isFixed = bodyUsed || body?.locked === true || status < 200;
    const hasBody = !isFixed && body !== null && this.#request.method !== 'HEAD';
    if (!isFixed) {
      // Otherwise Hono would put the headers of the old one over those of the new one.
      c.res = undefined;
      const init = { status, statusText, headers: this.#response.addTo(headers) };
      c.res = new Response(hasBody ? this.#watched(body) : body, init);
    }
    if (!hasBody) this.#response.end();
  }

  /** Two chunks are read ahead: a body that is not a stream is then at its end, even if other middleware replaces it unread. */
  #watched(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader();
    const end = (): void => {
      this.#response.end();
    };
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        end();
        controller.close();
      } catch (error) {
        end();
        controller.error(error);
      }
    };
    const cancel = (reason: unknown): Promise<void> => {
      this.#response.abort();
      return reader.cancel(reason);
    };
    // The server reads it outside of the request's context.
    return new ReadableStream({ pull: AsyncResource.bind(pull), cancel }, { highWaterMark: 2 });
  }
}
