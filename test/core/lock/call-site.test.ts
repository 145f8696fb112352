import { type AcquireOptions, getLock, lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf, queued, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const noWork = (): undefined => undefined;

/** The application. Each of its calls is a line of its own. */
const calls: Record<string, (options: AcquireOptions) => Promise<unknown>> = {
  acquire: (options: AcquireOptions) => lock.acquire('key', options),
  run: (options: AcquireOptions) => lock.run('key', noWork, options),
  whenFree: ({ waitMs }: AcquireOptions) => lock.whenFree('key', { waitMs }),
  acquireAll: (options: AcquireOptions) => lock.acquireAll(['a', 'key', 'z'], options),
  runAll: (options: AcquireOptions) => lock.runAll(['a', 'key', 'z'], noWork, options),
  acquireOfLock: (options: AcquireOptions) => getLock('key').acquire(options),
  runOfLock: (options: AcquireOptions) => getLock('key').run(noWork, options),
};

const names = Object.keys(calls);

function callAs(name: string, options: AcquireOptions): Promise<unknown> {
  return calls[name]?.(options) ?? Promise.resolve();
}

function framesOf(error: unknown): string[] {
  return ((error as Error).stack ?? '').split('\n').filter((line) => line.startsWith('    at '));
}

/** The frame of a call above. */
function frameOf(name: string): unknown {
  return expect.stringMatching(new RegExp(`${name}\\]? \\(.*call-site\\.test\\.ts:\\d+:\\d+\\)$`));
}

describe('The stack of an error', () => {
  it.each(names)(
    'A timeout of `%s` names the line of the application that made the call, and no other',
    async (name) => {
      const setup = setUp();
      await taken(setup);
      const refused = outcomeOf(setup.job().in(() => callAs(name, { waitMs: 1_000 })));
      await setup.clock.advance(1_000);
      expect((refused.error as Error).stack?.split('\n')[0]).toBe(
        'LockTimeoutError: The lock was not free within 1000 ms',
      );
      expect(framesOf(refused.error)).toEqual([frameOf(name)]);
    },
  );

  it.each(names)('A failure of the store at `%s` has the stack of the call', async (name) => {
    const { job, store } = setUp();
    store.always('acquire', { kind: 'rejected', error: new Error('ECONNREFUSED') });
    const failed = outcomeOf(job().in(() => callAs(name, { waitMs: 1_000 })));
    await failed.settled;
    expect(failed.error).toMatchObject({ code: 'ERR_LOCK_STORE', cause: { message: 'ECONNREFUSED' } });
    expect(framesOf(failed.error)[0]).toEqual(frameOf(name));
    expect(framesOf(failed.error).length).toBeGreaterThan(1);
  });

  it.each(names)(
    'A `%s` that nobody awaited, and whose request ends, fails with the line that made it',
    async (name) => {
      const setup = setUp();
      await taken(setup);
      const { in: inJob, end } = setup.job();
      const forgotten = outcomeOf(inJob(() => callAs(name, { waitMs: 1_000 })));
      await setup.clock.settle();
      await end();
      await forgotten.settled;
      expect(forgotten.error).toMatchObject({ code: 'ERR_LOCK_SCOPE' });
      expect(framesOf(forgotten.error)[0]).toEqual(frameOf(name));
    },
  );

  it.each(names)('A `%s` that is refused at once has the line that made it', async (name) => {
    const { job, locks } = setUp();
    const { in: inJob } = job();
    await locks.close();
    const refused = outcomeOf(inJob(() => callAs(name, { waitMs: 1_000 })));
    await refused.settled;
    expect(refused.error).toMatchObject({ code: 'ERR_LOCK_CLOSED' });
    expect(framesOf(refused.error)).toEqual([frameOf(name)]);
  });

  it('A try that the store does not answer has the line that made it', async () => {
    const { job, store } = setUp();
    store.always('acquire', { kind: 'rejected', error: new Error('ECONNREFUSED') });
    const application = { attempt: () => lock.tryAcquire('key') };
    const failed = outcomeOf(job().in(() => application.attempt()));
    await failed.settled;
    expect(framesOf(failed.error)[0]).toEqual(frameOf('attempt'));
  });

  it('Each waiter has the line of its own call', async () => {
    const setup = setUp();
    await taken(setup);
    const [first, second] = [await queued(setup), outcomeOf(setup.job().in(() => callAs('run', {})))];
    await setup.clock.settle();
    void setup.locks.close();
    await Promise.all([first.settled, second.settled]);
    expect([first, second].map(({ error }) => framesOf(error))).toEqual([
      [expect.stringContaining('set-up.ts')],
      [frameOf('run')],
    ]);
  });
});
