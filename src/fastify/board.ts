import type { FastifyReply, FastifyRequest } from 'fastify';
import { rethrow } from '../board/board-reply.ts';
import { LockBoard, type LockBoardOptions } from '../board/lock-board.ts';
import { type Plugin, pluginMeta } from './middleware.ts';

/**
 * A page that shows which locks are held and waited for, by whom, and for how long:
 * `app.register(lockBoard({ authorize }), { prefix: '/locks' })`. The user that `authorize` returns may look, and force-release
 * locks if it says so. Needs no `traceContext`. Throws `LockConfigError` for bad options.
 */
export function lockBoard(options: LockBoardOptions<FastifyRequest>): Plugin {
  const board = new LockBoard(options);
  const register: Plugin = function lockBoard(app, _, done) {
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
    // The board reads and checks what it is sent itself.
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null));
    app.all('/', serve);
    app.all('/*', serve);
    done();
  };
  return Object.assign(register, pluginMeta);
}
