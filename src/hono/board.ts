import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Context, MiddlewareHandler } from 'hono';
import { rethrow } from '../board/board-reply.ts';
import { LockBoard, type LockBoardOptions } from '../board/lock-board.ts';
import { alreadySentResponse, nodeOf } from './middleware.ts';

/**
 * A middleware that serves a page with the holders and waiters of all locks. `authorize` decides who may look, and who may
 * force-release locks. Needs `@hono/node-server`, but no `traceContext`. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import { Hono } from 'hono';
 * import { lockBoard } from 'reenlock/hono';
 *
 * const app = new Hono();
 * app.use('/locks/*', lockBoard({ authorize: (c) => isOperator(c.req.header('authorization')) && { name: 'ann' } }));
 * ```
 */
export function lockBoard(options: LockBoardOptions<Context>): MiddlewareHandler {
  const board = new LockBoard(options);
  return async function lockBoard(c, next) {
    const { req, res } = nodeOf(c, next);
    const { pathname, search } = new URL(c.req.url);
    const mountedAt = c.req.routePath.replace(/\/\*$/, '');
    const url = (pathname.slice(mountedAt.length) || '/') + search;
    const call = { req, res, url, originalUrl: pathname + search, body: await parsedBody(req, c) };
    return board.serve<Response | undefined | PromiseLike<undefined>>(call, c, {
      send: ({ status, headers, body }) => {
        const content = typeof body === 'string' ? body : (Readable.toWeb(body) as ReadableStream);
        return new Response(content, { status, headers });
      },
      pass: next as () => Promise<undefined>,
      fail: rethrow,
      leave: alreadySentResponse,
    });
  };
}

/** The body, if middleware of Hono or Node has read it. */
async function parsedBody(req: IncomingMessage & { body?: unknown }, c: Context): Promise<unknown> {
  if (!req.readableDidRead || req.body !== undefined) return req.body;
  return c.req.json().catch(() => undefined);
}
