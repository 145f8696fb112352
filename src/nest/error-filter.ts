import type { ServerResponse } from 'node:http';
import { type ArgumentsHost, Catch, type ExceptionFilter, Logger } from '@nestjs/common';
import { type Observable, throwError } from 'rxjs';
import { LockError } from '../core/index.ts';
import { problemOf } from '../core/model/errors/problem.ts';
import { problemOn } from '../http/problem.ts';
import { rawOf } from './raw.ts';

/**
 * Responds to lock errors with RFC 9457 problem documents, also to messages of microservices and gateways. Nest's own filter would
 * drop `Retry-After`, and log each refusal as an error of the server. This one logs only those: the errors that clients may not read.
 */
export class LockErrorFilter implements ExceptionFilter<LockError> {
  readonly #logger = new Logger('LocksModule');

  catch(error: LockError, host: ArgumentsHost): Observable<never> | undefined {
    const type: string = host.getType();
    // GraphQL has its own format of errors.
    if (type !== 'http' && type !== 'rpc' && type !== 'ws') throw error;
    if (!error.expose) this.#logger.error(error);
    if (type === 'http') this.#respond(error, host);
    // The reply to a message; an error that is thrown here would leave its sender without one.
    if (type === 'rpc') return throwError(() => messageOf(error));
    // As Nest's own filter of gateways.
    if (type === 'ws') host.switchToWs().getClient<Emitting>().emit('exception', messageOf(error));
    return undefined;
  }

  #respond(error: LockError, host: ArgumentsHost): void {
    const response: unknown = host.getArgByIndex(1);
    const res = rawOf<ServerResponse>(response);
    if (res.headersSent) {
      res.end();
      return;
    }
    const { status, headers, body } = problemOn(error, res, isReply(response) ? response : res);
    if (!isReply(response)) {
      res.writeHead(status, headers).end(body);
      return;
    }
    for (const [name, value] of Object.entries(headers)) response.header(name, value);
    // As bytes: both platforms add a charset to the type of text. And at once: if an event stream fails, Nest 11 ends its
    // response without waiting for a filter.
    response.status(status).send(Buffer.from(body));
  }
}
Catch(LockError)(LockErrorFilter);

interface Emitting {
  emit(event: string, data: object): unknown;
}

/** A problem document for what is no HTTP request. Nest's clients look for a `message`. */
function messageOf(error: LockError): object {
  const problem = JSON.parse(problemOf(error).body) as { readonly detail: string };
  return { ...problem, message: problem.detail };
}

/** What the platforms' responses have in common. */
interface Reply {
  hasHeader(name: string): boolean;
  removeHeader(name: string): void;
  header(name: string, value: string): unknown;
  status(code: number): { send(body: Buffer): unknown };
}

/** Not so in middleware on Fastify, which gets Node's own response. */
function isReply(response: unknown): response is Reply {
  return typeof (response as Partial<Reply>).header === 'function';
}
