// Compiled, never run: what must compile does, and each @ts-expect-error marks what must not.
import { createServer } from 'node:http';
import { serve } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import type { Hold, Locks } from 'reenlock';
import { closeServer, lockBoard, lockOn, sendProblem, traceContext } from 'reenlock/hono';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function expectTrue<T extends true>(): T;
declare const locks: Locks;

const app = new Hono<{ Variables: { user: string } }>();
app.use(traceContext({ locks })).use('/locks/*', lockBoard({ locks, authorize: (c) => ({ name: c.req.path }) }));
app.onError(sendProblem);

// The guard leaves the route's own inference alone.
app.post(
  '/orders/:id',
  lockOn((c) => c.req.param('id')),
  (c) => {
    const id: string = c.req.param('id');
    expectTrue<Same<typeof c.var.lock, Hold | undefined>>();
    expectTrue<Same<typeof c.var.locks, ReadonlyMap<string, Hold> | undefined>>();
    return c.text(id + c.var.user.toUpperCase());
  },
);
// @ts-expect-error there may be no hold
app.get('/', (c) => c.text(String(c.var.lock.fence)));

// Key functions and options.
lockOn(async (c) => ((await c.req.json()) as { id: string }).id);
lockOn((c: Context<{ Variables: { user: string } }>) => c.var.user, { skip: (c) => c.var.user === 'root' });
lockOn('k', { waitMs: 10, statusCode: 409, releaseOn: 'close', handler: sendProblem });
lockOn('k', { handler: (error, c) => c.text(error.code, 423) });
// @ts-expect-error a handler returns a response
lockOn('k', { handler: () => 'refused' });
// @ts-expect-error a key is text or a number
lockOn((c) => c.req.header());
// @ts-expect-error there is no such option
lockOn('k', { wait: 1 });
void closeServer(createServer(), locks, { drainMs: 1 });
void closeServer(serve(app), locks);
