import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { LockError } from '../model/errors.ts';

/** A response in the form of RFC 9457. It names no key, owner or server. */
export interface Problem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Describes a lock error to the client. */
export function problemOf(error: LockError): Problem {
  const title = STATUS_CODES[error.status] ?? 'Refused';
  const detail = error.expose ? error.message : withheld(error);
  const { status, code } = error;
  const body = JSON.stringify({ type: 'about:blank', title, status, detail, code });
  const length = String(Buffer.byteLength(body));
  const headers = { ...error.headers, 'Content-Type': 'application/problem+json', 'Content-Length': length };
  return { status, headers, body };
}

/** Leaves the error where loggers of requests look for it: pino-http logs `res.err`. */
export function leaveError(error: LockError, res: ServerResponse): void {
  (res as ServerResponse & { err?: LockError }).err = error;
}

/** Removes headers that describe a body which the handler did not send: the problem document is a different body. */
export function clearBodyHeaders(res: ServerResponse): void {
  // Removing `Transfer-Encoding` that was never set would stop Node from setting it.
  for (const name of bodyHeaders) if (res.hasHeader(name)) res.removeHeader(name);
}

const bodyHeaders = ['Transfer-Encoding', 'Content-Encoding', 'Content-Language', 'Content-Range'];

/** Replaces a message that only operators may read. */
function withheld({ retryable }: LockError): string {
  return retryable
    ? 'The lock that the request needs could not be acquired or kept; try again later'
    : 'The server failed to acquire a lock that the request needs';
}
