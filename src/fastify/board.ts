import type { FastifyReply, FastifyRequest } from 'fastify';
import { LockBoard, type LockBoardOptions } from '../core/http/board/lock-board.ts';
import type { Plugin } from './middleware.ts';

/**
 * A page that shows which locks are held and waited for, by whom, and for how long:
 * `app.register(lockBoard({ authorize }), { prefix: '/locks' })`. The user that `authorize` returns may look, and force-release
 * locks if it says so. Needs no `traceContext`. Throws `LockConfigError` for bad options.
 */
export function lockBoard(options: LockBoardOptions<FastifyRequest>): Plugin {
  const board = new LockBoard(options);
  return function lockBoard(app, _, done) {
    async function serve(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
      const { raw: req, originalUrl } = request;
      const { body } = req as { body?: unknown };
      const url = request.url.slice(app.prefix.length);
      const found = await board.reply({ req, url: url.startsWith('/') ? url : `/${url}`, originalUrl, body }, request);
      if (found === undefined) reply.callNotFound();
      // As bytes: Fastify adds a charset to the type of text.
      else
        reply
          .code(found.status)
          .headers(found.headers)
          .send(typeof found.body === 'string' ? Buffer.from(found.body) : found.body);
      return reply;
    }
    // The board reads and checks what it is sent itself.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null));
    app.all('/', serve);
    app.all('/*', serve);
    done();
  };
}
