import { currentTrace, type HeldBy, type LockTimeoutError, lock, runInTrace } from '../../../src/core/index.ts';
import { coreTests, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';
import { recordWarnings } from '../../support/warnings.ts';

const setUp = coreTests();
const warnings = recordWarnings();

const noWork = (): undefined => undefined;
const short = { waitMs: 1_000 } as const;
const alone = { reentrant: false } as const;

/** The error of a call that waits for a second. */
async function refusal({ clock }: Setup, call: Promise<unknown>): Promise<LockTimeoutError> {
  const refused = outcomeOf(call);
  await clock.advance(1_100);
  await refused.settled;
  return refused.error as LockTimeoutError;
}

const words: Record<HeldBy, string> = {
  request:
    "this request itself holds it, by a call around this one that it may not re-enter: one of both has `reentrant: false`, as `whenFree` has, or the outer one has `'request'` and this one is in a job. Change that option, or remove this call",
  branch:
    'another branch of this request holds it, such as parallel work or an earlier attempt that still runs. Await that before this call, or wait longer',
  trace:
    'a request of the same trace holds it, and this call is not nested in it. If that is the caller of this service, let it send all of `traceHeaders()`',
};

describe('A call that gave up reports whether it waited for its own work', () => {
  it.each<[string, HeldBy, () => Promise<unknown>]>([
    [
      'a `run` in a `run` that is not reentrant',
      'request',
      () => lock.run('key', () => lock.run('key', noWork, short), alone),
    ],
    [
      'a `run` that is not reentrant',
      'request',
      () => lock.run('key', () => lock.run('key', noWork, { ...short, ...alone })),
    ],
    [
      'an acquire after another, in a branch below',
      'request',
      async () => {
        await lock.acquire('key', alone);
        await lock.run('other', () => lock.acquire('key', short));
      },
    ],
    [
      'a job within a request that has the key for itself alone',
      'request',
      () => lock.run('key', () => runInTrace(() => lock.run('key', noWork, short)), { reentrant: 'request' }),
    ],
    ['`whenFree` in a `run`', 'request', () => lock.run('key', () => lock.whenFree('key', short))],
    ['a batch', 'request', () => lock.run('key', () => lock.runAll(['a', 'key', 'z'], noWork, short), alone)],
    [
      'one of two calls at once',
      'branch',
      () =>
        Promise.all([
          lock.run('key', () => new Promise(noWork), alone),
          lock.run('key', noWork, { ...short, ...alone }),
        ]),
    ],
  ])('%s: it is the %s', async (_, heldBy, work) => {
    const setup = setUp();
    const error = await refusal(setup, setup.job().in(work));
    expect(error).toMatchObject({
      code: 'ERR_LOCK_TIMEOUT',
      heldBy,
      message: expect.stringContaining(`ms: ${words[heldBy]}`),
    });
  });

  it('A called service that has no more than the trace id waits for the call around it, in another process', async () => {
    const setup = setUp();
    const call = (): Promise<unknown> => {
      const called = setup.sibling().job(currentTrace()?.traceId);
      return called.in(() => lock.acquire('key', short));
    };
    const error = await refusal(
      setup,
      setup.job().in(() => lock.run('key', call)),
    );
    expect(error).toMatchObject({ heldBy: 'trace', message: expect.stringContaining(words.trace) });
  });

  it('A call that waited for a stranger does not name it', async () => {
    const setup = setUp();
    await taken(setup);
    const error = await refusal(
      setup,
      setup.job().in(() => lock.acquire('key', short)),
    );
    expect(error.heldBy).toBeUndefined();
    expect(error.message).toBe('The lock was not free within 1000 ms');
  });

  it('A holder of one permit that asks for another waits for the others', async () => {
    const setup = setUp();
    const permits = { permits: 2 } as const;
    await taken(setup, permits);
    const { in: inJob } = setup.job();
    await inJob(() => lock.acquire('key', { ...permits, ...alone }));
    const error = await refusal(
      setup,
      inJob(() => lock.acquire('key', { ...permits, ...short })),
    );
    expect(error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', heldBy: undefined });
  });

  it('A wait that another one of the same process follows has its own reason', async () => {
    const setup = setUp();
    await taken(setup);
    const [first, second] = [await queued(setup, short), await queued(setup, short)];
    await setup.clock.advance(1_100);
    await Promise.all([first.settled, second.settled]);
    expect([first.error, second.error]).toMatchObject([{ heldBy: undefined }, { heldBy: undefined }]);
  });
});

describe('A request that takes very many keys', () => {
  const keys = Array.from({ length: 100 }, (_, index) => index);

  it('A loop of acquires gets a hint about `runAll`, once', async () => {
    const { job } = setUp();
    await job().in(async () => {
      for (const key of [...keys, 'one more']) await lock.acquire(key);
    });
    expect(warnings()).toMatchObject([{ code: 'LOCK_MANY_KEYS', message: expect.stringContaining('`lock.runAll`') }]);
  });

  it('Neither a batch nor a loop that releases each key gets a hint', async () => {
    const { job } = setUp();
    await job().in(async () => {
      await lock.runAll(keys, noWork);
      for (const key of keys) await lock.run(key, noWork);
    });
    expect(warnings()).toEqual([]);
  });
});
