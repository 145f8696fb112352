// Compiled, never run: what must compile does, and each @ts-expect-error marks what must not.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { Hold, LockError, Locks } from 'reenlock';
import { closeServer, type Guard, lockBoard, lockOn, sendProblem, traceContext } from 'reenlock/node';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function expectTrue<T extends true>(): T;
declare const locks: Locks;
declare function onRefused(error: LockError, req: IncomingMessage, res: ServerResponse): void;

// Run by hand, in a server without a framework.
const trace: Guard = traceContext({ locks });
const guard = lockOn((req) => req.url);
createServer((req, res) =>
  trace(req, res, () =>
    guard(req, res, (error) => {
      if (error !== undefined) return sendProblem(error as LockError, req, res, () => res.destroy());
      expectTrue<Same<typeof req.lock, Hold | undefined>>();
      expectTrue<Same<typeof req.locks, ReadonlyMap<string, Hold> | undefined>>();
      res.end(req.url);
    }),
  ),
);
// @ts-expect-error there may be no hold
createServer((req) => req.lock.fence);

// Key functions, also of a router's own requests.
interface Routed extends IncomingMessage {
  params: Record<string, string>;
}
lockOn((req: Routed, res) => [req.params.id, res.statusCode], { skip: (req) => req.params.id === 'free' });
lockOn(async (req) => req.headers['x-order']?.toString());
// @ts-expect-error a plain request has no parameters
lockOn((req) => req.params.id);
// @ts-expect-error a key is text or a number
lockOn((req) => req.headers);

// Options.
lockOn('k', { waitMs: 10, statusCode: 409, releaseOn: 'close', handler: sendProblem });
lockOn('k', { handler: onRefused });
// @ts-expect-error there is no such option
lockOn('k', { wait: 1 });

// The board, and the end of a server.
lockBoard({ locks, authorize: (req) => req.headers.authorization === 'secret' && { name: 'Ada' } });
void closeServer(createServer(), locks, { drainMs: 1 });
void closeServer(createSecureServer(), locks);
