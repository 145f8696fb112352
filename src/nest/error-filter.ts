import type { ServerResponse } from 'node:http';
import { type ArgumentsHost, Catch, type ExceptionFilter, Logger, StreamableFile } from '@nestjs/common';
import type { HttpAdapterHost } from '@nestjs/core';
import { clearBodyHeaders, leaveError } from '../core/http/problem.ts';
import { LockError } from '../core/index.ts';
import { problemOf } from '../core/model/problem.ts';
import { rawOf } from './raw.ts';

/**
 * Responds to lock errors with RFC 9457 problem documents. Nest's own filter would drop `Retry-After`, and log each refusal
 * as an error of the server. This one logs what is an error of the server: what clients may not read.
 */
export class LockErrorFilter implements ExceptionFilter<LockError> {
  readonly #host: HttpAdapterHost;
  readonly #logger = new Logger('LocksModule');

  constructor(host: HttpAdapterHost) {
    this.#host = host;
  }

  catch(error: LockError, host: ArgumentsHost): void {
    // GraphQL and microservices have responses of their own.
    if (host.getType() !== 'http') throw error;
    if (!error.expose) this.#logger.error(error);
    const { httpAdapter } = this.#host;
    const response: unknown = host.getArgByIndex(1);
    if (httpAdapter.isHeadersSent(response)) {
      httpAdapter.end(response);
      return;
    }
    const { status, headers, body } = problemOf(error);
    const res = rawOf<ServerResponse>(response);
    leaveError(error, res);
    clearBodyHeaders(res);
    for (const [name, value] of Object.entries(headers)) httpAdapter.setHeader(response, name, value);
    // As a stream of bytes: both platforms add a charset to the type of text.
    httpAdapter.reply(response, new StreamableFile(Buffer.from(body)), status);
  }
}
Catch(LockError)(LockErrorFilter);
