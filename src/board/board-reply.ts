import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import { pipeline, type Readable } from 'node:stream';
import { pageFiles } from './page.generated.ts';

/** A request to the board, on any framework. */
export interface BoardCall {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Its URL below the place where the board is mounted. */
  readonly url: string;
  /** Its URL as the server got it. */
  readonly originalUrl: string;
  /** The body, if a body parser above has read it. */
  readonly body: unknown;
}

/** A reply of the board, for the framework to send. */
export interface BoardReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Readable;
}

/** How a framework carries out the board's decision. All except `leave` run in the same tick as the check of the response. */
export interface ReplyActions<T> {
  send(reply: BoardReply): T;
  /** The board has nothing at this path. */
  pass(): T;
  /** `authorize` has failed. */
  fail(error: unknown): T;
  /** Other code has responded, or the client has disconnected: nothing may be sent. */
  leave(): T;
}

/** No inline code, no other origin, no frame. Every reply has these, also below helmet. */
const securityHeaders: Readonly<Record<string, string>> = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
};

/** A reply with the board's security headers. */
export function boardReply(
  status: number,
  type: string,
  body: string | Readable,
  headers: Readonly<Record<string, string>> = {},
): BoardReply {
  return { status, headers: { ...securityHeaders, 'Content-Type': type, ...headers }, body };
}

/** A reply that scripts read. */
export function jsonReply(body: object): BoardReply {
  return boardReply(200, 'application/json; charset=utf-8', JSON.stringify(body));
}

/** A refusal in the form of RFC 9457. */
export function problemReply(status: number, detail: string, headers?: Readonly<Record<string, string>>): BoardReply {
  const body = JSON.stringify({ type: 'about:blank', title: STATUS_CODES[status], status, detail });
  return boardReply(status, 'application/problem+json', body, headers);
}

/** A Server-Sent Events stream. `no-transform` keeps compressing middleware from holding messages back. */
export function streamReply(events: Readable): BoardReply {
  const headers = { 'Cache-Control': 'no-store, no-transform', 'X-Accel-Buffering': 'no' };
  return boardReply(200, 'text/event-stream; charset=utf-8', events, headers);
}

/** Sends a reply on a response of `node:http`. If the client disconnects, the stream is destroyed. */
export function sendReply(res: ServerResponse, { status, headers, body }: BoardReply): void {
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) res.setHeader(name, value);
  if (typeof body === 'string') {
    res.end(body);
    return;
  }
  res.flushHeaders();
  pipeline(body, res, () => {});
}

/** `fail` of a framework that awaits its handlers. */
export function rethrow(error: unknown): never {
  throw error;
}

const types = { html: 'text/html', css: 'text/css', mjs: 'text/javascript' } as const;

/** The page, as a reply for each of its paths. `/` is the page itself. */
export function pageReplies(): ReadonlyMap<string, BoardReply> {
  const replies = Object.entries(pageFiles).map(([file, text]) => {
    const type = types[file.slice(file.lastIndexOf('.') + 1) as keyof typeof types];
    return [file === 'index.html' ? '/' : `/${file}`, boardReply(200, `${type}; charset=utf-8`, text)] as const;
  });
  return new Map(replies);
}
