import type { ServerResponse } from 'node:http';
import type { LockError } from '../core/model/errors/lock-error.ts';

/** Leaves the error where loggers of requests look for it: pino-http logs `res.err`. */
export function leaveError(error: LockError, res: ServerResponse): void {
  (res as ServerResponse & { err?: LockError }).err = error;
}

/**
 * Removes headers that describe a body which the handler did not send: the problem document is a different body. For a framework
 * that keeps headers until it sends them, pass its own response.
 */
export function clearBodyHeaders(res: Pick<ServerResponse, 'hasHeader' | 'removeHeader'>): void {
  // Removing `Transfer-Encoding` that was never set would stop Node from setting it.
  for (const name of bodyHeaders) if (res.hasHeader(name)) res.removeHeader(name);
}

const bodyHeaders = ['Transfer-Encoding', 'Content-Encoding', 'Content-Language', 'Content-Range'];
