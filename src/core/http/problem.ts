import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { LockError } from '../model/errors.ts';

/** An answer in the form of RFC 9457; it names no key, owner or server. */
export interface Problem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The problem that a lock error is answered with. */
export function problemOf(error: LockError): Problem {
  const title = STATUS_CODES[error.status] ?? 'Refused';
  const detail = error.expose ? error.message : withheld(error);
  const { status, code } = error;
  const body = JSON.stringify({ type: 'about:blank', title, status, detail, code });
  const length = String(Buffer.byteLength(body));
  const headers = { ...error.headers, 'Content-Type': 'application/problem+json', 'Content-Length': length };
  return { status, headers, body };
}

/** Takes off the response what a handler has said of the body that it then did not send: the problem's is another one. */
export function clearBodyHeaders(res: ServerResponse): void {
  // Node would do without one that was taken off though it was not there.
  for (const name of bodyHeaders) if (res.hasHeader(name)) res.removeHeader(name);
}

const bodyHeaders = ['Transfer-Encoding', 'Content-Encoding', 'Content-Language', 'Content-Range'];

/** In place of a message that is the operator's only. */
function withheld({ retryable }: LockError): string {
  return retryable
    ? 'The lock that the request needs could not be had or kept; try again later'
    : 'The server failed to lock what the request needs';
}
