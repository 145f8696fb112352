import {
  createLocks,
  getLock,
  LockConfigError,
  LockKeyError,
  type Locks,
  type LocksOptions,
  lock,
  runInTrace,
} from '../../../src/core/index.ts';
import { checkAcquireOptions } from '../../../src/core/model/options.ts';
import { buildLocks } from '../../../src/core/runtime/locks.ts';
import { RequestGuard } from '../../../src/http/guard.ts';
import { ManualClock } from '../../support/clock/manual-clock.ts';
import { everyRow } from '../../support/rows.ts';
import { isAmong, locksTable, odd } from '../model/option-table.ts';

const created: Locks[] = [];
afterEach(async () => {
  for (const locks of created.splice(0)) await locks.close();
});

function build(options: unknown): Locks {
  const locks = createLocks(options as LocksOptions);
  created.push(locks);
  return locks;
}

describe('The options of an acquire', () => {
  const table = [
    ...locksTable.filter(([name]) => ['leaseMs', 'waitMs', 'maxHoldMs', 'renew', 'reentrant'].includes(name)),
    ['category', 'a string of 1 to 256 characters', ['5', '__proto__']],
    ['mode', "'write' or 'read'", []],
    ['priority', 'a whole number, -100 to 100', [0, -1]],
    ['signal', 'an AbortSignal', []],
  ] as const;

  it.each(table)(
    'The options refuse each invalid value of %s that is not %s, wherever they are given',
    async (name, expected, taken) => {
      const refused = odd.filter(([value]) => !isAmong(taken, value));
      await everyRow(
        refused,
        ([, got]) => got,
        ([value, got]) => expectRefused(name, value, `Expected \`${name}\` to be ${expected}, got ${got}`),
      );
    },
  );

  async function expectRefused(name: string, value: unknown, message: string): Promise<void> {
    const error = new LockConfigError(message);
    const options = { [name]: value };
    expect(() => getLock('key', options)).toThrow(error);
    expect(() => new RequestGuard('key', options)).toThrow(error);
    await expect(lock.acquire('key', options)).rejects.toThrow(error);
    await expect(lock.run('key', () => {}, options)).rejects.toThrow(error);
    await runInTrace(
      () => expect(Promise.resolve().then(() => getLock('key').acquire(options))).rejects.toThrow(error),
      { locks: build({}) },
    );
  }

  it.each(['', 'c'.repeat(257)])('The options refuse the category %j', (category) => {
    expect(() => getLock('key', { category })).toThrow(LockConfigError);
  });

  it('The options refuse another event target as the signal', () => {
    expect(() => getLock('key', { signal: new EventTarget() as AbortSignal })).toThrow(/ to be an AbortSignal, got /);
  });

  it.each<object>([{ waitMs: 500 }, { signal: new AbortController().signal }])(
    'tryAcquire refuses options about waiting: %p; getLock accepts them',
    async (options) => {
      const [name] = Object.keys(options);
      const refusal = new RegExp(`^Expected the options of tryAcquire to be among .*, got \`${name}\`$`);
      await runInTrace(
        async () => {
          await expect(lock.tryAcquire('key', options)).rejects.toThrow(refusal);
          await expect(getLock('key').tryAcquire(options)).rejects.toThrow(refusal);
          expect((await getLock('key', options).tryAcquire())?.isHeld()).toBe(true);
          expect((await getLock('key', options).tryAcquire({ leaseMs: 500 }))?.isHeld()).toBe(true);
        },
        { locks: build({}) },
      );
    },
  );

  it('The options are checked together with those of the Locks', async () => {
    await runInTrace(
      () =>
        expect(lock.acquire('key', { leaseMs: 2_000 })).rejects.toThrow(
          'Expected `leaseMs` to be `maxHoldMs` (1000) at most, got `2000`',
        ),
      { locks: build({ leaseMs: 500, maxHoldMs: 1_000 }) },
    );
  });

  it('The options of a lock are checked together at once, not with its first acquire', () => {
    expect(() => getLock('key', { leaseMs: 2_000, maxHoldMs: 1_000 })).toThrow(
      'Expected `leaseMs` to be `maxHoldMs` (1000) at most, got `2000`',
    );
  });

  it('The options drop undefined, so that it never hides what the lock was given, and are frozen', async () => {
    expect(checkAcquireOptions({ leaseMs: undefined, waitMs: 5 }, 'acquire')).toStrictEqual({ waitMs: 5 });
    expect(Object.isFrozen(checkAcquireOptions({ waitMs: 5 }, 'acquire'))).toBe(true);
    const clock = new ManualClock();
    const locks = buildLocks({ renew: false }, clock);
    created.push(locks);
    await runInTrace(
      async () => {
        const hold = await getLock('key', { leaseMs: 1_000 }).acquire({ leaseMs: undefined });
        expect(hold.remainingMs()).toBeLessThan(1_000);
      },
      { locks },
    );
  });
});

describe('The options of one call', () => {
  it('The options of one call override those of the lock, which stay for other calls', async () => {
    const clock = new ManualClock();
    const locks = buildLocks({}, clock);
    created.push(locks);
    const given = getLock('key', { leaseMs: 1_000, category: 'a' });
    await runInTrace(
      async () => {
        expect((await given.acquire({ leaseMs: 20_000 })).remainingMs()).toBeGreaterThan(19_000);
        await given.acquire({ category: 'b' });
        expect(['a', 'b', 'c'].map((category) => getLock('key', { category }).isHeld())).toEqual([true, true, false]);
        expect(given.holdCount()).toBe(1);
      },
      { locks },
    );
  });
});

describe('The options of a guard', () => {
  it.each([
    ['statusCode', 399, 'a whole number, 400 to 599', '`399` (number)'],
    ['statusCode', 600, 'a whole number, 400 to 599', '`600` (number)'],
    ['statusCode', '423', 'a whole number, 400 to 599', '`423` (string)'],
    ['releaseOn', 'finish', "'end' or 'close'", '`finish` (string)'],
    ['skip', true, 'a function', '`true` (boolean)'],
    ['handler', {}, 'a function', 'a value of type object'],
  ])('A guard refuses %s: %j', (name, value, expected, got) => {
    expect(() => new RequestGuard('key', { [name]: value })).toThrow(
      new LockConfigError(`Expected \`${name}\` to be ${expected}, got ${got}`),
    );
  });

  it.each([
    [undefined, '`undefined` (undefined)'],
    [5, '`5` (number)'],
    [{}, 'a value of type object'],
    [['key'], 'a value of type array'],
  ])('A guard refuses %p as the key', (key, got) => {
    expect(() => new RequestGuard(key as string, {})).toThrow(
      new LockConfigError(`Expected the guard's key to be a string or a function, got ${got}`),
    );
  });

  it('A guard refuses a constant that can’t be a key', () => {
    for (const key of ['', 'x'.repeat(5_000)]) expect(() => new RequestGuard(key, {})).toThrow(LockKeyError);
  });

  it('The options of a guard are checked together', () => {
    expect(() => new RequestGuard('key', { leaseMs: 2_000, maxHoldMs: 1_000 })).toThrow(
      'Expected `leaseMs` to be `maxHoldMs` (1000) at most, got `2000`',
    );
  });
});

describe('The options of runInTrace', () => {
  it.each(['', 'a b', 'a\r\nb', 'ä', 'x'.repeat(129), 5, null, {}])(
    'runInTrace refuses the trace id %j',
    async (traceId) => {
      const options = { traceId, locks: build({}) } as { traceId: string; locks: Locks };
      await expect(runInTrace(() => {}, options)).rejects.toThrow(
        /^Expected `traceId` to be 1 to 128 letters, digits, dots, underscores or hyphens, got /,
      );
    },
  );

  it.each([null, {}, 'locks', { on: () => {}, close: () => {} }])('runInTrace refuses %p as locks', async (locks) => {
    await expect(runInTrace(() => {}, { locks: locks as unknown as Locks })).rejects.toThrow(
      /^Expected `locks` to be .*, got /,
    );
  });

  it.each([undefined, null, 'routine', {}])('runInTrace refuses %p as the routine', async (routine) => {
    await expect(runInTrace(routine as () => void)).rejects.toThrow(
      /^Expected the first argument of runInTrace to be a function, got /,
    );
  });

  it('runInTrace refuses an unknown option', async () => {
    await expect(runInTrace(() => {}, { trace: 'a' } as object)).rejects.toThrow(/to be among .*, got `trace`$/);
  });
});
