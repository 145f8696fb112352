import type { Request } from 'express';
import { sendReply } from '../core/http/board/board-reply.ts';
import { LockBoard, type LockBoardOptions } from '../core/http/board/lock-board.ts';
import { failureOf } from '../core/http/guard.ts';
import { checkCall } from '../core/http/misuse.ts';
import type { Guard } from './middleware.ts';

/**
 * A page of who holds and who waits for which lock, and for how long: `app.use('/locks', lockBoard({ authorize }))`. Whoever
 * `authorize` names may look, and force-release locks if it says so. Needs no `traceContext`. Throws `LockConfigError` for bad
 * options.
 */
export function lockBoard(options: LockBoardOptions<Request>): Guard {
  const board = new LockBoard(options);
  return function lockBoard(rawReq, res, next) {
    checkCall('express', rawReq, res, res, next);
    const req = rawReq as Request;
    const { url, originalUrl, body } = req;
    const replied = board.reply({ req, url, originalUrl, body }, req);
    void replied.then(
      (reply) => (reply === undefined ? next() : sendReply(res, reply)),
      (error: unknown) => next(failureOf(error)),
    );
  };
}
