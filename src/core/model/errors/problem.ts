import { STATUS_CODES } from 'node:http';

/** The reply to a client about a lock error. */
interface Refusal {
  readonly message: string;
  readonly code: string;
  readonly status: number;
  readonly expose: boolean;
  readonly retryable: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/** A response in the form of RFC 9457. It names no key, owner or server. */
export interface Problem {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Describes a lock error to the client. */
export function problemOf(error: Refusal): Problem {
  const title = STATUS_CODES[error.status] ?? 'Refused';
  const detail = error.expose ? error.message : withheld(error);
  const { status, code } = error;
  const body = JSON.stringify({ type: 'about:blank', title, status, detail, code });
  const length = String(Buffer.byteLength(body));
  const headers = { ...error.headers, 'Content-Type': 'application/problem+json', 'Content-Length': length };
  return { status, headers, body };
}

/** Replaces a message that only operators may read. */
function withheld({ status, retryable }: Refusal): string {
  if (retryable) return 'The lock that the request needs could not be acquired; try again later';
  return status === 503
    ? 'The lock of the request failed during its work, which may have been done in part'
    : 'The server failed to acquire a lock that the request needs';
}
