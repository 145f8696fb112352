import { type Locks, lock } from 'reenlock';
import { traceContext as expressTraceContext, lockOn as unboundLockOn } from 'reenlock/express';
import { traceContext as koaTraceContext } from 'reenlock/koa';
import { processState } from '../../src/core/base/process-state.ts';
import { buildLocks } from '../../src/core/runtime/locks.ts';
import { ManualClock } from '../support/clock/manual-clock.ts';
import { gate } from '../support/gate.ts';
import { express5 } from '../support/http/express-app.ts';
import type { App, Call, Handler, Middleware } from '../support/http/frameworks.ts';
import { clientLeaves, ServerStage, type ServerStageOptions } from '../support/http/server-stage.ts';
import { recordWarnings } from '../support/warnings.ts';

const warnings = recordWarnings();
beforeEach(() => processState().spellings.clear());

const { lockOn, traceContext } = express5;
const ok: Handler = (call) => call.send('in');
const mount = (key: Parameters<typeof lockOn>[0]) => (app: App) => app.route('/orders/:id', lockOn(key), ok);
const missing = 'the value that it is made from is probably missing';
const noContext =
  'Expected `traceContext()` to run before each guard, got a request that did not pass through it: mount it first, at the top';

// What fails without a request is in `wrong-uses.test.ts`.
describe('The messages of wrong uses during a request', () => {
  afterEach(ServerStage.endAll);

  it.each<[use: string, build: (app: App, locks: Locks) => void, stack: string, options?: ServerStageOptions]>([
    [
      'a key that is missing',
      mount((call) => call.params.missing),
      `LockKeyError: Expected the lock key to be a string, number or bigint, got undefined: ${missing}\n    at lockOn (GET /orders/:id)`,
    ],
    [
      'one of several keys that is missing',
      mount((call) => ['stock', call.params.missing]),
      `LockKeyError: Expected the lock key \`keys[1]\` to be a string, number or bigint, got undefined: ${missing}\n    at lockOn (GET /orders/:id)`,
    ],
    [
      'a guard without `traceContext`',
      mount('key'),
      `LockScopeError: ${noContext}\n    at lockOn (GET /orders/:id)`,
      { bare: true },
    ],
    [
      'a guard above `traceContext`',
      (app, locks) => mount('key')(app).use(traceContext({ locks })),
      `LockScopeError: ${noContext}\n    at lockOn (GET /orders/:id)`,
      { bare: true },
    ],
    [
      'a `traceContext` that is not called',
      (app) => app.use(expressTraceContext as unknown as Middleware),
      'LockConfigError: Expected `traceContext()` to be mounted, got `traceContext` itself, which was called with a request: call it first\n',
      { bare: true },
    ],
    [
      'a `lockOn` that is not called',
      (app) => app.route('/orders/:id', unboundLockOn as unknown as Middleware, ok),
      'LockConfigError: Expected `lockOn(key)` to be mounted, got `lockOn` itself, which was called with a request: call it first\n',
    ],
    [
      'middleware of another framework',
      (app) => app.use(koaTraceContext() as Middleware),
      'LockConfigError: Expected a middleware to be called with `(ctx, next)`, got a call by Express: import it from `reenlock/express` instead\n',
      { bare: true },
    ],
  ])('%s: the error says what was expected, what came and what to do', async (_, build, stack, options = {}) => {
    const errors: Error[] = [];
    const stage = await ServerStage.start(express5, options, (app, { locks }) => {
      build(app, locks);
      app.onError((error, call) => {
        errors.push(error as Error);
        call.send('refused', 500);
      });
    });
    await stage.get('/orders/42');
    expect(errors.map((error) => error.stack)).toEqual([expect.stringContaining(stack)]);
  });
});

describe('What a wrong use warns of, once', () => {
  afterEach(ServerStage.endAll);

  const guarded: Handler = async (call) => {
    await lock.run(`${call.params.id}`, () => {}, { waitMs: call.params.id === 'wait' ? 15 : undefined });
    call.send('in');
  };
  const both = ['/orders/01', '/orders/1'];
  const ownLine = expect.stringMatching(/^ {4}at .*wrong-requests\.test\.ts:\d+:\d+\)?\nSee .*errors\.md#lock_/);

  it.each<[use: string, build: (app: App) => void, paths: string[], code: string, says: string, detail: unknown]>([
    [
      'a part of a guard’s key that is missing',
      mount((call) => `order:${call.params.missing}`),
      both,
      'LOCK_KEY_SEGMENT',
      'Expected each part of a lock key to have a value, got `order:undefined` on the route `GET /orders/:id`: the value for "undefined" was probably missing, so unrelated work may share this lock',
      expect.stringMatching(/^See /),
    ],
    [
      'a part of a key in a handler that is missing',
      (app) => app.route('/orders/:id', async (call) => call.send(await lock.run('order:undefined', () => 'in'))),
      both,
      'LOCK_KEY_SEGMENT',
      'Expected each part of a lock key to have a value, got `order:undefined`: the value for "undefined" was probably missing, so unrelated work may share this lock',
      ownLine,
    ],
    [
      'two spellings of one key in a guard',
      mount((call) => `order:${call.params.id}`),
      both,
      'LOCK_KEY_SPELLING',
      'Expected each key to be written in one way, got two of the form `order:*` on the route `GET /orders/:id` that differ only in white space, leading zeros, letter case or Unicode form: they are two locks, and nobody under one waits for the other. Normalize the value before you lock',
      expect.stringMatching(/^See /),
    ],
    [
      'two spellings of one key',
      (app) =>
        app.route('/orders/:id', async (call) => call.send(await lock.run(`order:${call.params.id}`, () => 'in'))),
      both,
      'LOCK_KEY_SPELLING',
      'Expected each key to be written in one way, got two of the form `order:*` that differ only in white space, leading zeros, letter case or Unicode form: they are two locks, and nobody under one waits for the other. Normalize the value before you lock',
      ownLine,
    ],
    [
      'seconds for the milliseconds of a wait',
      (app) => app.route('/orders/:id', guarded),
      ['/orders/wait', '/orders/wait'],
      'LOCK_SECONDS',
      'Expected `waitMs` to be a number of milliseconds, got `15`: did you mean seconds? Write `15_000`',
      ownLine,
    ],
    [
      'a loop over very many keys',
      (app) =>
        app.route('/orders/:id', async (call) => {
          for (let n = 0; n < 200; n++) await lock.acquire(`order:${n}`);
          call.send('in');
        }),
      both,
      'LOCK_MANY_KEYS',
      "Expected a request or job that needs many keys to acquire them together, got one that holds 100 and has acquired the last one alone: `lock.runAll` and `lock.acquireAll` make fewer calls, and can't deadlock",
      ownLine,
    ],
  ])('%s: the warning says what was expected, what came and what to do, and where', async (_, ...row) => {
    const [build, paths, code, says, detail] = row;
    const stage = await ServerStage.start(express5, build);
    for (const path of paths) await stage.get(path);
    expect(warnings()).toEqual([{ code, message: says, detail }]);
  });

  it('Work below a guard that is not awaited: the warning names the route, and the line that gave it away', async () => {
    const [answered, over] = [gate(), gate()];
    const work = async (): Promise<void> => {
      await answered;
      await lock.run('other', () => {}).catch(() => over.open());
    };
    const stage = await ServerStage.start(express5, (app) =>
      app.route('/orders/:id', lockOn('key'), (call: Call) => {
        void work();
        call.send('early');
      }),
    );
    await stage.get('/orders/42');
    answered.open();
    await over;
    expect(warnings()).toEqual([
      {
        code: 'LOCK_LATE_WORK',
        message:
          'Expected the work of a guarded request to end before its response, got calls after its guard had released the lock on the route `GET /orders/:id`: await the work before you respond, or pass it to `hold.waitUntil`',
        detail: ownLine,
      },
    ]);
  });

  it('A handler that never responds: the warning names the route when the lock is lost', async () => {
    const clock = new ManualClock();
    // The stage itself listens to its locks' losses.
    const locks = buildLocks({ abortGraceMs: 4_000 }, clock);
    locks.on('granted', () => stage.note('in'));
    const stage = await ServerStage.start(express5, { bare: true }, (app) =>
      app.use(traceContext({ locks })).route('/orders/:id', lockOn('key'), async () => {
        await clientLeaves(stage);
        stage.note('client left');
      }),
    );
    const client = await stage.connect();
    client.request({ path: '/orders/42' });
    await stage.until('in');
    await client.hangUp();
    await stage.until('client left');
    await clock.advance(4_000);
    await locks.close();
    expect(warnings()).toMatchObject([
      {
        code: 'LOCK_LOST',
        message: expect.stringMatching(
          /^The lock was lost: .*the handler must end the response then too, but did not within abortGraceMs on the route `GET \/orders\/:id`\. No code noticed it: listen with/,
        ),
      },
    ]);
  });
});
