// Compiled, never run: what must compile does, and each @ts-expect-error marks what must not.
import { createServer, type IncomingMessage } from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { createServer as createSecureServer } from 'node:https';
import { type NextFunction, type Request, type Response, Router } from 'express';
import { type Hold, type LockError, type Locks, runInTrace } from 'reenlock';
import { closeServer, lockOn, sendProblem, traceContext } from 'reenlock/express';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function expectTrue<T extends true>(): T;
declare const locks: Locks;
declare function onRefused(error: LockError, req: Request, res: Response, next: NextFunction): void;
const router = Router();

// The guard leaves the route's own inference alone.
router.post(
  '/orders/:id',
  lockOn((r) => r.params.id),
  (req) => req.params.id.toUpperCase(),
);
router.post(
  '/orders/:id',
  lockOn((r) => r.params.id),
  (req) => {
    expectTrue<Same<typeof req.params, { id: string }>>();
    expectTrue<Same<typeof req.lock, Hold | undefined>>();
    expectTrue<Same<typeof req.locks, ReadonlyMap<string, Hold> | undefined>>();
  },
);
// @ts-expect-error the route has no such parameter
router.post('/orders/:id', lockOn('orders'), (req) => req.params.name);
// @ts-expect-error there is no hold without a guard
router.get('/orders', (req) => req.lock.fence);
// @ts-expect-error the body stays what the route says
router.post<'/', object, object, { a: string }>('/', lockOn('orders'), (req) => req.body.a.toFixed());

// Guards stand alone, in lists, and after each other.
router.use(traceContext({ locks }), lockOn('all'));
router.post(
  '/:a/:b',
  [lockOn((r) => r.params.a), lockOn((r) => r.params.b)],
  (req: Request<{ a: string }>) => req.params.a,
);

// Key functions.
lockOn((r, res) => [r.params.id, r.query.page === undefined ? 1 : 2n, res.statusCode]);
lockOn(async (r) => r.get('x-order'));
lockOn((r: Request<{ id: string }>) => r.params.id);
lockOn(() => null);
lockOn((r) => {
  expectTrue<Same<typeof r.params, Record<string, string>>>();
  return r.path;
});
// A request that its application has typed throughout, as its handlers have it.
type Order = Request<{ id: string }, { isPaid: boolean }, { amount: number }, { page?: string }, OrderLocals>;
interface OrderLocals {
  tenant: string;
}
interface TenantOrder extends Order {
  region: string;
}
lockOn((r: Order) => [r.params.id, r.body.amount, r.query.page], { skip: (r) => r.body.amount === 0 });
lockOn<TenantOrder>((r) => r.region, { handler: (_error, r, res) => res.status(423).send(r.region) });
lockOn((r: Request<{ id: string }, { isPaid: boolean }>) => r.params.id);
// @ts-expect-error a key function is called with a request
lockOn((text: string) => text);
// @ts-expect-error a key is text or a number
lockOn(() => ({ id: 1 }));
// @ts-expect-error a key is text or a number
lockOn((r) => r.params);
// @ts-expect-error a constant key is text
lockOn(42);
// @ts-expect-error a guard needs a key
lockOn();
// @ts-expect-error a parameter is text
lockOn((r) => r.params.id?.toFixed());

// Options.
lockOn('k', { waitMs: 10, leaseMs: 5, renew: false, maxHoldMs: undefined, reentrant: 'request', category: 'orders' });
lockOn('k', { skip: (req) => req.method === 'GET', statusCode: 409, releaseOn: 'close' });
lockOn('k', { handler: (error, _req, res, next) => (error.retryable ? res.sendStatus(503) : next(error)) });
lockOn('k', { handler: sendProblem });
// The key function's own type is what counts, whatever the others would take.
lockOn((r) => r.params.id?.trim(), { handler: sendProblem });
lockOn((r) => r.params.id?.trim(), { skip: (req: IncomingMessage) => req.method === 'GET', handler: onRefused });
lockOn((r: Request<{ id: string }>) => r.params.id, { skip: (req) => req.params.id === '', handler: onRefused });
// @ts-expect-error not a moment of release
lockOn('k', { releaseOn: 'finish' });
// @ts-expect-error durations are numbers
lockOn('k', { waitMs: '10' });
// @ts-expect-error no such option
lockOn('k', { timeout: 10 });
// @ts-expect-error it is 'trace', 'request' or false
lockOn('k', { reentrant: 'session' });
// @ts-expect-error no such option
lockOn('k', { owner: 'request' });

traceContext();
traceContext({ trust: 'none', headerName: 'X-Request-Id', abortGraceMs: 1_000 });
traceContext({ trust: (req) => req.socket.remoteAddress === '::1' });
// @ts-expect-error no such trust
traceContext({ trust: 'everyone' });
// @ts-expect-error not a Locks
traceContext({ locks: new Map() });

void runInTrace(() => 1, { locks }).then((result) => expectTrue<Same<typeof result, number>>());

void closeServer(createServer(), locks, { drainMs: 1_000 }).then((result) => expectTrue<Same<typeof result, void>>());
void closeServer(createSecureServer(), locks);
// @ts-expect-error the sessions of HTTP/2 are not its to end
void closeServer(createHttp2Server(), locks);
