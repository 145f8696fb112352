import { type Locks, lock } from 'reenlock';
import { processState } from '../../src/core/base/process-state.ts';
import { buildLocks } from '../../src/core/runtime/locks.ts';
import { ManualClock } from '../support/clock/manual-clock.ts';
import { express5 } from '../support/http/express-app.ts';
import type { App, Handler } from '../support/http/frameworks.ts';
import { clientLeaves, ServerStage } from '../support/http/server-stage.ts';
import { recordWarnings } from '../support/warnings.ts';

const warnings = recordWarnings();
beforeEach(() => processState().spellings.clear());

const { lockOn, traceContext } = express5;
const ok: Handler = (call) => call.send('in');
const mount = (key: Parameters<typeof lockOn>[0]) => (app: App) => app.route('/orders/:id', lockOn(key), ok);

// What fails without a request is in `wrong-uses.test.ts`; a wrong key, middleware that is not called and that of another
// framework are in `test/http/guards/`.
describe('The messages of wrong uses during a request', () => {
  afterEach(ServerStage.endAll);

  it.each<[use: string, build: (app: App, locks: Locks) => unknown]>([
    ['without `traceContext`', mount('key')],
    ['above `traceContext`', (app, locks) => mount('key')(app).use(traceContext({ locks }))],
  ])('A guard %s: the error says what was expected, what came, what to do, and the route', async (_, build) => {
    const errors: Error[] = [];
    const stage = await ServerStage.start(express5, { bare: true }, (app, { locks }) => {
      build(app, locks);
      app.onError((error, call) => {
        errors.push(error as Error);
        call.send('refused', 500);
      });
    });
    await stage.get('/orders/42');
    expect(errors.map(({ stack }) => stack)).toEqual([
      'LockScopeError: Expected `traceContext()` to run before each guard, got a request that did not pass through it: mount it first, at the top\n    at lockOn (GET /orders/:id)',
    ]);
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
      "Expected a request or job that needs many keys to acquire them together, got one that holds 100 and acquires another one alone: `lock.runAll` and `lock.acquireAll` make fewer calls, and can't deadlock",
      ownLine,
    ],
  ])('%s: the warning says what was expected, what came and what to do, and where', async (_, ...row) => {
    const [build, paths, code, says, detail] = row;
    const stage = await ServerStage.start(express5, build);
    for (const path of paths) await stage.get(path);
    expect(warnings()).toEqual([{ code, message: says, detail }]);
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
