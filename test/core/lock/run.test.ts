import { map, of, Subject } from 'rxjs';
import {
  currentTrace,
  getLock,
  type Hold,
  LockConfigError,
  LockStoreError,
  lock,
  runInTrace,
  type Trace,
} from '../../../src/core/index.ts';
import { coreTests, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const short = { leaseMs: 1_000, renew: false } as const;

describe('lock.run', () => {
  it.each([
    ['a value', () => 42],
    ['a promise', async () => 42],
    // biome-ignore lint/suspicious/noThenProperty: another library's promise
    ['a thenable', () => ({ then: (resolve: (value: number) => void) => resolve(42) }) as PromiseLike<number>],
  ])('run holds the key while its routine runs, and returns its result: %s', async (_, routine) => {
    const { job, store } = setUp();
    let hold: Hold | undefined;
    const value = await job().in(() =>
      getLock('key').run((own) => {
        hold = own;
        expect(own.isHeld()).toBe(true);
        return routine();
      }),
    );
    expect(value).toBe(42);
    expect(hold?.isHeld()).toBe(false);
    expect(await store.remains()).toEqual([]);
  });

  it.each([
    [undefined, '`undefined` (undefined)'],
    [{ waitMs: 5 }, 'a value of type object'],
    [Promise.resolve(1), 'a value of type object'],
  ])('run refuses %p as its routine, before it acquires the key', async (value, got) => {
    const { job, locks } = setUp();
    const granted = jest.fn();
    locks.on('granted', granted);
    const routine = value as unknown as () => void;
    const refusal = (usage: string) => {
      const where = usage.slice(0, usage.indexOf('('));
      return new LockConfigError(`Expected the routine of ${where} to be a function, got ${got}: write \`${usage}\``);
    };
    await job().in(async () => {
      await expect(lock.run('key', routine)).rejects.toThrow(refusal('run(key, routine, options)'));
      await expect(getLock('key').run(routine)).rejects.toThrow(refusal('run(routine, options)'));
      await expect(lock.runAll(['key'], routine)).rejects.toThrow(refusal('runAll(keys, routine, options)'));
    });
    expect(granted).not.toHaveBeenCalled();
  });

  it.each<[string, () => unknown]>([
    ['got a generator', async function* rows() {}],
    ['got a generator', function* rows() {}],
    ['got a generator', () => (async function* rows() {})()],
    ['got an Observable', () => of('charged')],
    ['return `lastValueFrom(observable)`', async () => of('charged').pipe(map(() => 'mapped'))],
    ['return `Effect.runPromise(effect)`', () => ({ '~effect/Effect': {}, pipe: () => {} })],
    ['got an Effect', async () => ({ _op: 'Commit', effect_instruction_i0: () => {} })],
  ])(
    'run and runAll reject if their routine returns what would begin its work after the release: %s, %p',
    async (got, routine) => {
      const { job, store } = setUp();
      const refusal = { code: 'ERR_LOCK_CONFIG', message: expect.stringContaining(got) };
      await job().in(async () => {
        await expect(lock.run('key', routine)).rejects.toMatchObject(refusal);
        await expect(lock.runAll(['key', 'other'], routine)).rejects.toMatchObject(refusal);
      });
      expect(await store.remains()).toEqual([]);
    },
  );

  it('run returns a subject of RxJS, an object that can only be subscribed to, and a result of Effect, as its routine does', async () => {
    const { job } = setUp();
    const exit = { '~effect/Effect': {}, _tag: 'Success', value: 'charged' };
    const failure = Object.assign(new Error('declined'), { '~effect/Effect': {} });
    for (const value of [new Subject(), { subscribe: () => {} }, exit, failure])
      expect(await job().in(() => lock.run('key', () => value))).toBe(value);
  });

  it.each([new Error('routine'), 'a string', undefined, null, 0])(
    'run and runAll reject with what their routine throws, unchanged, and release: %p',
    async (thrown) => {
      const { job, store } = setUp();
      for (const routine of [
        () => {
          throw thrown;
        },
        () => Promise.reject(thrown),
      ]) {
        for (const run of [() => lock.run('key', routine), () => lock.runAll(['a', 'b'], routine)]) {
          const outcome = outcomeOf(job().in(run));
          await outcome.settled;
          expect(outcome.state).toBe('rejected');
          expect(outcome.error).toBe(thrown);
          expect(await store.remains()).toEqual([]);
        }
      }
    },
  );

  it('run rejects with its routine’s error once the release has its reply, and not before', async () => {
    const { job, store, clock } = setUp();
    const open = store.gate('release');
    const outcome = outcomeOf(job().in(() => lock.run('key', () => Promise.reject(new Error('routine')))));
    await clock.settle();
    expect(store.count('release')).toBe(1);
    expect(outcome.state).toBe('pending');
    open();
    await clock.settle();
    expect(outcome.error).toEqual(new Error('routine'));
  });

  it('run works if its routine has released the hold', async () => {
    const { job } = setUp();
    expect(
      await job().in(() =>
        lock.run('key', async (hold) => {
          await hold.release();
          return 'value';
        }),
      ),
    ).toBe('value');
  });
});

describe('A store that does not reply to the release of a run', () => {
  it.each([
    ['never answers', { kind: 'lostCall' }],
    ['rejects', { kind: 'rejected', error: new Error('down') }],
  ] as const)(
    'A store that does not reply to the release and %s masks neither the result nor the error',
    async (_, fault) => {
      const { job, store, clock } = setUp();
      store.always('release', fault);
      const bad = (): Promise<never> => Promise.reject(new Error('routine'));
      const runs = [
        () => lock.run('a', () => 'value'),
        () => lock.runAll(['b', 'c'], () => 'value'),
        () => lock.run('d', bad),
        () => lock.runAll(['e', 'f'], bad),
      ].map((run) => outcomeOf(job().in<Promise<unknown>>(run)));
      await clock.advance(5_000);
      expect(runs.map(({ value, error }) => value ?? error)).toEqual([
        'value',
        'value',
        new Error('routine'),
        new Error('routine'),
      ]);
    },
  );
});

describe('A hold that was lost while its routine ran', () => {
  /** What the run of a routine rejects with; its hold has a fixed lease of a second. */
  async function failureOf({ job }: Setup, routine: (hold: Hold) => unknown): Promise<unknown> {
    const outcome = outcomeOf(job().in(() => lock.run('key', routine, short)));
    await outcome.settled;
    expect(outcome.state).toBe('rejected');
    return outcome.error;
  }

  it('A loss while the routine succeeded is a LockLostError with the value', async () => {
    const setup = setUp();
    let hold: Hold | undefined;
    const error = await failureOf(setup, async (own) => {
      hold = own;
      await setup.clock.advance(1_000);
      return { id: 7 };
    });
    expect(error).toMatchObject({ code: 'ERR_LOCK_LOST', key: 'key', fence: hold?.fence, value: { id: 7 } });
    // The signal's reason says the same: as a cause, it would be logged twice.
    expect(error).toMatchObject({ message: hold?.signal.reason.message });
    expect(error).not.toHaveProperty('cause');
  });

  it.each<[string, (setup: Setup) => unknown]>([
    ['nothing had noticed yet', ({ clock }) => clock.skip(1_000)],
    ['only the release finds', ({ store }) => store.forget()],
  ])('A loss that %s is a LockLostError, too', async (_, lose) => {
    const setup = setUp();
    const error = await failureOf(setup, async () => {
      await lose(setup);
      return 'value';
    });
    expect(error).toMatchObject({ code: 'ERR_LOCK_LOST', value: 'value' });
  });

  it('A loss of a run that outlived its scope is a LockLostError, too, and ends the scope', async () => {
    const { locks, clock } = setUp();
    let finish = (_: string): void => {};
    const work = new Promise<string>((resolve) => {
      finish = resolve;
    });
    let trace: Trace | undefined;
    let running: Promise<string> | undefined;
    await runInTrace(
      async () => {
        trace = currentTrace();
        running = lock.run('key', () => work, { leaseMs: 3_000 });
        await clock.settle();
      },
      { locks },
    );
    const outcome = outcomeOf(running as Promise<string>);
    clock.skip(3_000);
    expect(trace?.hasEnded).toBe(false);
    finish('value');
    await clock.settle();
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_LOST', value: 'value' });
    expect(trace?.hasEnded).toBe(true);
  });

  it('A loss while the routine threw is the routine’s own error', async () => {
    const setup = setUp();
    const error = await failureOf(setup, async () => {
      await setup.clock.advance(1_000);
      throw new Error('routine');
    });
    expect(error).toEqual(new Error('routine'));
  });

  it('A loss that the routine found by assertHeld is that LockLostError, without a value', async () => {
    const setup = setUp();
    const error = await failureOf(setup, async (hold) => {
      await setup.clock.advance(1_000);
      hold.assertHeld();
    });
    expect(error).toMatchObject({ code: 'ERR_LOCK_LOST', value: undefined });
  });

  it('A loss in a nested run is a loss for the outer run, too', async () => {
    const setup = setUp();
    const error = await failureOf(setup, async () => {
      await lock.run('key', () => setup.clock.advance(1_000), short).catch(() => {});
      return 'value';
    });
    expect(error).toMatchObject({ code: 'ERR_LOCK_LOST', value: 'value' });
  });
});

describe('An acquire of a run that fails', () => {
  it('run never calls the routine if the acquire fails', async () => {
    const { job, store, clock } = setUp();
    store.always('acquire', { kind: 'lostCall' });
    const routine = jest.fn();
    const outcome = outcomeOf(job().in(() => lock.run('key', routine)));
    await clock.advance(2_000);
    expect(outcome.error).toBeInstanceOf(LockStoreError);
    expect(routine).not.toHaveBeenCalled();
  });
});
