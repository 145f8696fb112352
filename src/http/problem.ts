import type { ServerResponse } from 'node:http';
import type { LockError } from '../core/model/errors/lock-error.ts';
import { type Problem, problemOf } from '../core/model/errors/problem.ts';

/**
 * Prepares a response for the problem document of an error, and returns that. Removes the headers that describe a body which the
 * handler did not send: from `unsent` for a framework that keeps headers until it sends them.
 */
export function problemOn(error: LockError, res: ServerResponse, unsent: HeaderList = res): Problem {
  // Where loggers of requests look for it: pino-http logs `res.err`.
  (res as ServerResponse & { err?: LockError }).err = error;
  // Removing `Transfer-Encoding` that was never set would stop Node from setting it.
  for (const name of bodyHeaders) if (unsent.hasHeader(name)) unsent.removeHeader(name);
  return problemOf(error);
}

type HeaderList = Pick<ServerResponse, 'hasHeader' | 'removeHeader'>;

const bodyHeaders = ['Transfer-Encoding', 'Content-Encoding', 'Content-Language', 'Content-Range'];
