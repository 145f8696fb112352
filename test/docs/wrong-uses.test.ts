import { configureLocks, createLocks, type Hold, LockError, type Locks, lock, runInTrace } from 'reenlock';
import { lockOn, sendProblem, traceContext } from 'reenlock/express';

/** As JavaScript calls it, or TypeScript with `any`. */
const loose = lock as unknown as Record<'acquire' | 'acquireAll' | 'run', (...args: unknown[]) => Promise<unknown>>;
const routine = (): void => {};

// What fails when the application starts is in `wrong-setups.test.ts`, what fails with a request in `wrong-requests.test.ts`,
// and what a refused wait says of who holds the lock in `test/core/lock/held-by.test.ts`.
describe('The messages of each wrong use', () => {
  let locks: Locks;
  beforeEach(() => {
    locks = createLocks();
  });
  afterEach(() => locks.close());
  const inJob = (call: () => unknown) => () => runInTrace(async () => call(), { locks });

  it.each<[use: string, call: () => unknown, says: string]>([
    [
      'seconds for milliseconds',
      inJob(() => loose.acquire('key', { leaseMs: 30 })),
      'Expected `leaseMs` to be a whole number of milliseconds, 100 to 2147483647, got `30` (number): did you mean seconds? Write `30_000`',
    ],
    [
      'the name that an option has in another library',
      inJob(() => loose.acquire('key', { ttl: 5_000 })),
      'Expected the options of acquire to be among `waitMs`, `leaseMs`, `renew`, `maxHoldMs`, `reentrant`, `signal`, `category`, `mode`, `permits`, `priority`, got `ttl`. Did you mean `leaseMs`?',
    ],
    [
      'a duration with its unit',
      inJob(() => loose.acquire('key', { waitMs: '5s' })),
      'Expected `waitMs` to be a whole number of milliseconds, 0 to 2147483647, or Infinity, got `5s` (string): write `5_000`',
    ],
    [
      'a number for the options',
      inJob(() => loose.acquire('key', 5_000)),
      'Expected the options of acquire to be an object, got `5000` (number). Did you mean `{ waitMs: 5000 }` or `{ leaseMs: 5000 }`?',
    ],
    [
      'the options before the routine',
      inJob(() => loose.run('key', {}, routine)),
      'Expected the routine of run to be a function, with the options after it, got a value of type object: write `run(key, routine, options)`',
    ],
    [
      'a key that is missing',
      inJob(() => loose.acquire(undefined)),
      'Expected the lock key to be a string, number or bigint, got undefined: the value that it is made from is probably missing',
    ],
    [
      'one of several keys that is missing',
      inJob(() => loose.acquireAll(['a', undefined])),
      'Expected the lock key `keys[1]` to be a string, number or bigint, got undefined: the value that it is made from is probably missing',
    ],
    [
      'a hold that is used after `release`',
      inJob(async () => {
        const hold = await lock.acquire('key');
        await hold.release();
        hold.assertHeld();
      }),
      'Expected a hold that lasts, got one that is released; `release` was called before: call it when the work has ended',
    ],
    [
      'a hold that is used after its request or job',
      async () => {
        const kept: Hold[] = [];
        await inJob(async () => kept.push(await lock.acquire('key')))();
        kept[0]?.assertHeld();
      },
      'Expected a hold that lasts, got one that is released; the end of its request or job released it: pass work that goes on to `hold.waitUntil` before that',
    ],
    [
      'a release without a hold',
      inJob(() => lock.release('key')),
      'The request or job does not hold the lock: acquire it first',
    ],
    [
      'a `Locks` for the options of `configureLocks`',
      async () => configureLocks(locks as never),
      'Expected the options of a `Locks`, got a `Locks` that exists: `configureLocks(options)` creates one itself and makes it the default. Remove the call of `createLocks`',
    ],
    [
      'a lock outside of a request',
      async () => lock.acquire('key'),
      'Expected to be called within a request or job, got a call outside of both. Likely causes: `traceContext()` is not mounted, or below this route; a callback that lost the async context (wrap it with `AsyncResource.bind`); code outside a request, such as a job or a test, which needs `runInTrace`',
    ],
    [
      'the pattern of a route for a key',
      async () => lockOn('/orders/:id'),
      "Expected the guard's key to be a function of the request, or a constant; got a constant that looks like a template, which would be one lock for every request. Write `lockOn((req) => req.params.id)` or, in Koa, `lockOn((ctx) => ctx.params.id)` instead",
    ],
    [
      'an error handler that is called',
      async () => Reflect.apply(sendProblem, undefined, []),
      'Expected `sendProblem` to be called with an error and its response, got `undefined` (undefined) as the response. Did you mean `app.use(sendProblem)`, without a call?',
    ],
    [
      'a kind of trust that does not exist',
      async () => traceContext({ trust: 'loopback' as 'internal' }),
      "Expected `trust` to be 'internal', 'all', 'none', a function of the request, or `{ secrets, audience }`, got 'loopback'",
    ],
  ])(
    '%s: the message says what was expected, what came, and what to do, and the stack where',
    async (_, call, says) => {
      const error: unknown = await Promise.resolve(call()).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LockError);
      const { message, stack, help } = error as LockError;
      expect(message).toBe(says);
      expect(stack).toContain('wrong-uses.test.ts');
      expect(help).toContain('docs/reference/errors.md#err_lock_');
    },
  );
});
