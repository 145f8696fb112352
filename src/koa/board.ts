import type { Context, Next } from 'koa';
import { rethrow } from '../board/board-reply.ts';
import { LockBoard, type LockBoardOptions } from '../board/lock-board.ts';
import { checkCall } from '../http/misuse.ts';
import type { Guard } from './middleware.ts';

/**
 * A middleware that serves a page with the holders and waiters of all locks. `authorize` decides who may look, and who may
 * force-release locks. Needs no `traceContext`. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import Koa from 'koa';
 * import mount from 'koa-mount';
 * import { lockBoard } from 'reenlock/koa';
 *
 * const app = new Koa();
 * app.use(mount('/locks', lockBoard({ authorize: (ctx) => isOperator(ctx.headers.authorization) && { name: 'ann' } })));
 * ```
 */
export function lockBoard(options: LockBoardOptions<Context>): Guard {
  const board = new LockBoard(options);
  async function serve(ctx: Context, next: Next): Promise<void> {
    const { req, res, url, originalUrl } = ctx;
    const { body } = ctx.request as { body?: unknown };
    await board.serve<unknown>({ req, res, url, originalUrl, body }, ctx, {
      send: (reply) => {
        ctx.status = reply.status;
        ctx.set(reply.headers);
        ctx.body = reply.body;
      },
      pass: next,
      fail: rethrow,
      leave: () => {
        // Koa would end a response that other code has begun.
        if (res.headersSent) ctx.respond = false;
      },
    });
  }

  return function lockBoard(ctx, next) {
    // Thrown, not rejected: Express 4 ignores promises.
    checkCall('koa', ctx, next, ctx.res, next);
    return serve(ctx as Context, next);
  };
}
