import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { rethrow, sendReply } from '../board/board-reply.ts';
import { LockBoard } from '../board/lock-board.ts';
import type { BoardUser } from '../board/viewer.ts';
import { systemClock } from '../core/base/clock.ts';
import type { Locks } from '../core/index.ts';

/** A server with only the board, and the token that opens it once. */
export interface BoardServer {
  readonly server: Server;
  readonly token: string;
}

const cookieName = 'reenlock-board';
const textHeaders = {
  'Content-Type': 'text/plain; charset=utf-8',
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
};

/**
 * Creates a server for one user. The first request with the token gets a cookie, which all others must have: the printed address
 * opens the board for one browser, and for nobody who finds it later.
 */
export function createBoardServer(locks: Locks, user: BoardUser): BoardServer {
  const token = systemClock.randomId();
  const session = systemClock.randomId();
  let isUsed = false;
  const board = new LockBoard<IncomingMessage>({ locks, authorize: (req) => hasCookie(req, session) && user });

  async function serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = req.url ?? '/';
    // A page of another site that has a name for 127.0.0.1 must not read this.
    if (!isLoopback(req.headers.host)) return reply(res, 421, 'Expected a request to 127.0.0.1 or localhost');
    if (!isUsed && url === `/?token=${token}`) {
      isUsed = true;
      const cookie = `${cookieName}=${session}; HttpOnly; SameSite=Strict; Path=/`;
      res.writeHead(303, { ...textHeaders, 'Set-Cookie': cookie, Location: '/' }).end();
      return;
    }
    if (!hasCookie(req, session))
      return reply(
        res,
        403,
        'Open the address that `reenlock board` has printed. It works once: to open the board in another browser, start the command again',
      );
    await board.serve({ req, res, url, originalUrl: url, body: undefined }, req, {
      send: (found) => sendReply(res, found),
      pass: () => reply(res, 404, 'Not found'),
      fail: rethrow,
      leave: () => {},
    });
  }

  const server = createServer((req, res) => {
    serve(req, res).catch((error: unknown) => {
      process.stderr.write(`reenlock: ${(error as Error).stack}\n`);
      if (res.headersSent) res.destroy();
      else reply(res, 500, 'The board failed: see the terminal');
    });
  });
  return { server, token };
}

function reply(res: ServerResponse, status: number, text: string): void {
  res.writeHead(status, textHeaders).end(`${text}\n`);
}

function hasCookie({ headers }: IncomingMessage, session: string): boolean {
  const cookies = (headers.cookie ?? '').split(/;\s*/);
  return cookies.includes(`${cookieName}=${session}`);
}

function isLoopback(host: string | undefined): boolean {
  return /^(127\.0\.0\.1|localhost)(:\d+)?$/.test(host ?? '');
}
