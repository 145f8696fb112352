import { STATUS_CODES } from 'node:http';
import type { LockError } from '../errors.ts';

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
  return {
    status: error.status,
    headers: { ...error.headers, 'Content-Type': 'application/problem+json' },
    body: JSON.stringify({ type: 'about:blank', title, status: error.status, detail, code: error.code }),
  };
}

/** In place of a message that is the operator's only. */
function withheld({ retryable }: LockError): string {
  return retryable
    ? 'The lock that the request needs could not be had or kept; try again later'
    : 'The server failed to lock what the request needs';
}
