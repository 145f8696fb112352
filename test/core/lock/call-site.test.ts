import { type AcquireOptions, getLock, type Hold, lock, resumeHold } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
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
  tryAcquire: () => lock.tryAcquire('key'),
};

/** Those that wait. */
const names = Object.keys(calls).filter((name) => name !== 'tryAcquire');

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

  it.each([...names, 'tryAcquire'])('A failure of the store at `%s` has the stack of the call', async (name) => {
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
      const forgotten = await setup.clock.settled(outcomeOf(inJob(() => callAs(name, { waitMs: 1_000 }))));
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

  it('A try that nobody awaited, and whose request ends, fails with the line that made it', async () => {
    const { job } = setUp();
    const { in: inJob, end } = job();
    const application = { attempt: () => lock.tryAcquire('key') };
    const forgotten = outcomeOf(inJob(() => application.attempt()));
    await end();
    await forgotten.settled;
    expect(forgotten.error).toMatchObject({ code: 'ERR_LOCK_SCOPE' });
    expect(framesOf(forgotten.error)[0]).toEqual(frameOf('attempt'));
  });

  it('A timeout has its line although the process has frozen `Error`, and the limit of frames stays as it was', async () => {
    const { stackTraceLimit } = Error;
    const application = { call: () => lock.acquire('key', { waitMs: 0 }) };
    const refusal = async (): Promise<unknown> => {
      const setup = setUp();
      await taken(setup);
      return setup.job().in(() => application.call().catch((error: unknown) => error));
    };
    const errors = [await refusal()];
    Object.defineProperty(Error, 'stackTraceLimit', { writable: false });
    try {
      errors.push(await refusal());
    } finally {
      Object.defineProperty(Error, 'stackTraceLimit', { writable: true });
    }
    expect(Error.stackTraceLimit).toBe(stackTraceLimit);
    expect(errors.map((error) => framesOf(error))).toEqual([[frameOf('call')], [frameOf('call')]]);
  });

  it('20 acquires at once have their line, and one more every 10 ms', async () => {
    const setup = setUp();
    await taken(setup);
    const application = { call: () => lock.acquire('key', { waitMs: 0 }) };
    const withLine = async (): Promise<number> => {
      const errors = Array.from({ length: 30 }, () => application.call().catch((error: unknown) => error));
      return (await Promise.all(errors)).filter((error) => framesOf(error).length > 0).length;
    };
    const counts: number[] = [];
    for (const passedMs of [0, 0, 50, 60_000]) {
      await setup.clock.advance(passedMs);
      counts.push(await setup.job().in(withLine));
    }
    expect(counts).toEqual([19, 0, 5, 20]);
  });

  it('Each waiter has the line of its call', async () => {
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

  it.each(['run', 'runAll', 'runOfLock'])(
    'A `%s` that loses its lock, and that nobody awaited, fails with the line that made it',
    async (name) => {
      const setup = setUp();
      const work = gate();
      const calling: Record<string, () => Promise<unknown>> = {
        run: () => lock.run('key', () => work, { renew: false }),
        runAll: () => lock.runAll(['a', 'key'], () => work, { renew: false }),
        runOfLock: () => getLock('key').run(() => work, { renew: false }),
      };
      const forgotten = outcomeOf(setup.job().in(() => calling[name]?.() ?? Promise.resolve()));
      await setup.clock.advance(20_000);
      work.open();
      await forgotten.settled;
      expect(forgotten.error).toMatchObject({ code: 'ERR_LOCK_LOST' });
      expect(framesOf(forgotten.error)[0]).toEqual(frameOf(name));
    },
  );

  it('A nested `run` that loses its lock fails with the line that acquired the lock', async () => {
    const setup = setUp();
    const work = gate();
    const application = {
      outer: () => lock.run('key', () => lock.run('key', () => work, { renew: false }), { renew: false }),
    };
    const lost = outcomeOf(setup.job().in(() => application.outer()));
    await setup.clock.advance(20_000);
    work.open();
    await lost.settled;
    expect(lost.error).toMatchObject({ code: 'ERR_LOCK_LOST' });
    expect(framesOf(lost.error)[0]).toEqual(frameOf('outer'));
  });

  it('A signal, an event and a release that report a loss have the line that acquired the lock', async () => {
    const setup = setUp();
    const losses = setup.events('lost');
    const application = { take: () => lock.acquire('key', { renew: false }) };
    const hold = await setup.job().in(() => application.take());
    const { signal } = hold;
    await setup.clock.advance(20_000);
    await taken(setup);
    const released = outcomeOf(hold.release());
    await released.settled;
    const told = [signal.reason, released.error, losses[0]?.error];
    expect(told.map((error) => framesOf(error)[0])).toEqual(told.map(() => frameOf('take')));
  });

  it.each<[string, (hold: Hold, token: string) => Promise<unknown>]>([
    ['extend', (hold) => hold.extend(60_000)],
    ['detach', (hold) => hold.detach({ leaseMs: 60_000 })],
    ['inspect', () => getLock('key').inspect()],
    ['isLocked', () => getLock('key').isLocked()],
    ['forceRelease', () => getLock('key').forceRelease()],
    ['resumeHold', (_, token) => resumeHold(token)],
  ])('A failure of the store at `%s` has the line that made the call', async (name, call) => {
    const setup = setUp();
    const { in: inJob } = setup.job();
    const hold = await inJob(() => lock.acquire('key'));
    const other = await inJob(() => lock.acquire('other'));
    const token = await other.detach({ leaseMs: 60_000 });
    const error = new Error('ECONNREFUSED');
    for (const operation of ['renew', 'transfer', 'inspect', 'forceRelease'] as const) {
      setup.store.always(operation, { kind: 'rejected', error });
    }
    const application = { [name]: () => call(hold, token) };
    const failed = outcomeOf(inJob(() => application[name]?.() ?? Promise.resolve()));
    await setup.clock.advance(20_000);
    await failed.settled;
    expect(failed.error).toMatchObject({ code: 'ERR_LOCK_STORE' });
    expect(framesOf(failed.error)[0]).toEqual(expect.stringContaining('call-site.test.ts'));
  });
});
