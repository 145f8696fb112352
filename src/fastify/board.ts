import type { FastifyReply, FastifyRequest } from 'fastify';
import { rethrow } from '../board/board-reply.ts';
import { LockBoard, type LockBoardOptions } from '../board/lock-board.ts';
import { type Plugin, plugin } from './middleware.ts';

/**
 * A plugin that serves a page with the holders and waiters of all locks. `authorize` decides who may look, and who may
 * force-release locks. Needs no `traceContext`. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import fastify from 'fastify';
 * import { lockBoard } from 'reenlock/fastify';
 *
 * const app = fastify();
 * await app.register(lockBoard({ authorize: (req) => isOperator(req.headers.authorization) && { name: 'ann' } }), {
 *   prefix: '/locks',
 * });
 * ```
 */
export function lockBoard(options: LockBoardOptions<FastifyRequest>): Plugin {
  const board = new LockBoard(options);
  return plugin((app) => {
    async function serve(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
      const { raw: req, originalUrl } = request;
      const { body } = req as { body?: unknown };
      const path = request.url.slice(app.prefix.length);
      const url = path.startsWith('/') ? path : `/${path}`;
      await board.serve<unknown>({ req, res: reply.raw, url, originalUrl, body }, request, {
        // As bytes: Fastify adds a charset to the type of text.
        send: ({ status, headers, body: content }) =>
          reply
            .code(status)
            .headers(headers)
            .send(typeof content === 'string' ? Buffer.from(content) : content),
        pass: () => reply.callNotFound(),
        fail: rethrow,
        leave: () => {},
      });
      return reply;
    }
    // The board reads and checks request bodies itself.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null));
    app.all('/', serve);
    app.all('/*', serve);
  });
}
