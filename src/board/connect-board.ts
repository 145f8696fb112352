import type { IncomingMessage } from 'node:http';
import type { Middleware } from '../http/connect.ts';
import { failureOf } from '../http/guard.ts';
import { isRightCall } from '../http/misuse.ts';
import { sendReply } from './board-reply.ts';
import { LockBoard, type LockBoardOptions } from './lock-board.ts';

/**
 * A middleware that serves a page with the holders and waiters of all locks. `authorize` decides who may look, and who may
 * force-release locks. Needs no `traceContext`. Throws `LockConfigError` for bad options.
 *
 * @example
 * ```ts
 * import express from 'express';
 * import { lockBoard } from 'reenlock/node';
 *
 * const app = express();
 * app.use('/locks', lockBoard({ authorize: (req) => isOperator(req.headers.authorization) && { name: 'ann' } }));
 * ```
 */
export function lockBoard<R extends IncomingMessage = IncomingMessage>(options: LockBoardOptions<R>): Middleware {
  const board = new LockBoard(options);
  return function lockBoard(req, res, next) {
    if (!isRightCall('connect', req, res, res, next)) return;
    const { url = '/', originalUrl = url, body } = req as Mounted;
    void board.serve({ req, res, url, originalUrl, body }, req as R, {
      send: (reply) => sendReply(res, reply),
      pass: () => next(),
      fail: (error) => next(failureOf(error)),
      leave: () => {},
    });
  };
}

/** A request with the properties of routers and body parsers. */
type Mounted = IncomingMessage & { originalUrl?: string; body?: unknown };
