// Compiled, never run: what must compile does, and each @ts-expect-error marks what must not.
import { createServer } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer as createSecureServer } from 'node:https';
import Router from '@koa/router';
import Koa, { type Context, type ExtendableContext } from 'koa';
import type { Hold, Locks } from 'reenlock';
import { closeServer, type LockState, lockOn, sendProblem, traceContext } from 'reenlock/koa';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function expectTrue<T extends true>(): T;
declare const locks: Locks;
const router = new Router();

// The guard leaves the route's own inference alone.
router.post(
  '/orders/:id',
  lockOn((ctx) => ctx.params.id),
  (ctx) => {
    expectTrue<Same<typeof ctx.state.lock, Hold | undefined>>();
    expectTrue<Same<typeof ctx.state.locks, ReadonlyMap<string, Hold> | undefined>>();
    ctx.body = ctx.params.id?.toUpperCase();
  },
);
// @ts-expect-error there may be no hold
router.get('/orders', (ctx) => ctx.state.lock.fence);
// @ts-expect-error a parameter is text
router.get('/orders/:id', lockOn('orders'), (ctx) => ctx.params.id?.toFixed());

// An application with a state of its own.
interface OwnState {
  user: string;
}
const app = new Koa<OwnState & LockState>();
app.use(traceContext({ locks })).use(lockOn('all'));
app.use((ctx) => {
  expectTrue<Same<typeof ctx.state.user, string>>();
  expectTrue<Same<typeof ctx.state.lock, Hold | undefined>>();
});

// Key functions.
lockOn((ctx) => [ctx.params.id, ctx.query.page === undefined ? 1 : 2n, ctx.status]);
lockOn(async (ctx) => ctx.get('x-order'));
lockOn((ctx: Context) => ctx.path);
lockOn(() => null);
lockOn((ctx) => {
  expectTrue<Same<typeof ctx.params, Record<string, string>>>();
  return ctx.path;
});
// @ts-expect-error a key is text or a number
lockOn(() => ({ id: 1 }));
// @ts-expect-error a key is text or a number
lockOn((ctx) => ctx.params);
// @ts-expect-error a constant key is text
lockOn(42);
// @ts-expect-error a guard needs a key
lockOn();

// Options.
lockOn('k', { skip: (ctx) => ctx.method === 'GET', statusCode: 409, releaseOn: 'close' });
lockOn('k', { handler: sendProblem });
// The key function's own type is what counts, whatever the others would take.
lockOn((ctx) => ctx.params.id?.trim(), { handler: sendProblem });
lockOn((ctx) => ctx.params.id?.trim(), { skip: (ctx: ExtendableContext) => ctx.method === 'GET' });
// @ts-expect-error no such option
lockOn('k', { timeout: 10 });

traceContext({ trust: 'none', headerName: 'X-Request-Id', abortGraceMs: 1_000 });
// @ts-expect-error no such trust
traceContext({ trust: 'everyone' });

void closeServer(createServer(), locks, { drainMs: 1_000 }).then((result) => expectTrue<Same<typeof result, void>>());
void closeServer(createSecureServer(), locks);
// @ts-expect-error the sessions of HTTP/2 are not its to end
void closeServer(createHttp2Server(), locks);
