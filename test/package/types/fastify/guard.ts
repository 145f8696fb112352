// Compiled, never run: what must compile does, and each @ts-expect-error marks what must not.
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import type { Hold, LockError, Locks } from 'reenlock';
import { closeServer, lockBoard, lockOn, sendProblem, traceContext } from 'reenlock/fastify';

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function expectTrue<T extends true>(): T;
declare const locks: Locks;
declare function onRefused(error: LockError, request: FastifyRequest, reply: FastifyReply): void;

const app = fastify();
app
  .register(traceContext({ locks }))
  .register(lockBoard({ locks, authorize: ({ ip }) => ip === '::1' && { name: 'Ada' } }));
app.setErrorHandler(sendProblem);

// The guard leaves the route's own inference alone.
interface Order {
  Params: { id: string };
  Body: { amount: number };
}
app.post<Order>('/orders/:id', { preHandler: lockOn((request) => request.params.id) }, (request) => {
  expectTrue<Same<typeof request.params, { id: string }>>();
  expectTrue<Same<typeof request.lock, Hold | undefined>>();
  expectTrue<Same<typeof request.locks, ReadonlyMap<string, Hold> | undefined>>();
  return request.body.amount;
});
app.get('/', { onRequest: [lockOn('a'), lockOn('b')] }, () => 'in');
app.addHook('preHandler', lockOn('all'));
// @ts-expect-error there may be no hold
app.get('/orders', ({ lock }) => lock.fence);

// Key functions and options.
lockOn((request: FastifyRequest<Order>, reply) => [request.params.id, request.body.amount, reply.statusCode]);
lockOn<FastifyRequest<Order>>((request) => request.params.id, { skip: (request) => request.body.amount === 0 });
lockOn('k', { waitMs: 10, statusCode: 409, releaseOn: 'close', handler: sendProblem });
lockOn('k', { handler: onRefused });
// @ts-expect-error a key is text or a number
lockOn((request) => request.params);
// @ts-expect-error there is no such option
lockOn('k', { wait: 1 });
void closeServer(app, locks, { drainMs: 1 });
