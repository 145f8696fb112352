import { EventEmitter } from 'node:events';
import type { OutgoingHttpHeader } from 'node:http';

/** The part of Node's response that the life of a request reads. It keeps headers, and sends nothing. */
export class FetchResponse extends EventEmitter {
  headersSent = false;
  writableEnded = false;
  destroyed = false;
  readonly #headers = new Map<string, OutgoingHttpHeader>();

  setHeader(name: string, value: OutgoingHttpHeader): void {
    this.#headers.set(name.toLowerCase(), value);
  }

  getHeader(name: string): OutgoingHttpHeader | undefined {
    return this.#headers.get(name.toLowerCase());
  }

  hasHeader(name: string): boolean {
    return this.#headers.has(name.toLowerCase());
  }

  removeHeader(name: string): void {
    this.#headers.delete(name.toLowerCase());
  }

  writeHead(): void {
    this.headersSent = true;
  }

  end(): void {
    if (this.destroyed) return;
    this.writableEnded = true;
    this.#close();
  }

  /** The client has disconnected. Not by `destroy`, which is the server's. */
  abort(): void {
    if (!this.destroyed) this.#close();
  }

  /** Returns the headers of the application's response, with those here that it has not set. */
  addTo(given: Headers): Headers {
    const headers = new Headers(given);
    for (const [name, value] of this.#headers) {
      if (!given.has(name)) for (const each of [value].flat()) headers.append(name, String(each));
    }
    return headers;
  }

  #close(): void {
    this.destroyed = true;
    this.emit('close');
  }
}
