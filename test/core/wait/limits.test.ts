import { processState } from '../../../src/core/base/process-state.ts';
import {
  getLock,
  type Hold,
  Locked,
  LockKeyError,
  LockLimitError,
  type LocksOptions,
  LockTimeoutError,
  lock,
} from '../../../src/core/index.ts';
import { currentScope } from '../../../src/core/scope/context.ts';
import { RequestGuard } from '../../../src/http/guard.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, type Outcome, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('An invalid key', () => {
  const refused: readonly (readonly [string, unknown])[] = [
    ['undefined', undefined],
    ['null', null],
    ['an empty string', ''],
    ['NaN', Number.NaN],
    ['Infinity', Number.POSITIVE_INFINITY],
    ['-Infinity', Number.NEGATIVE_INFINITY],
    ['true', true],
    ['an object', {}],
    ['an object with toString', { toString: () => 'key' }],
    ['a String object', new String('key')],
    ['a Number object', new Number(1)],
    ['an array in an array', [['key']]],
    ['a symbol', Symbol('key')],
    ['a well-known symbol', Symbol.iterator],
    ['a date', new Date(0)],
    ['a function', () => 'key'],
    ['a buffer', Buffer.from('key')],
    ['a set', new Set(['key'])],
    ['4 097 bytes', 'x'.repeat(4_097)],
    ['4 098 bytes in 2 049 characters', 'ä'.repeat(2_049)],
    ['1 MB', 'x'.repeat(2 ** 20)],
    ['a bigint of 4 097 digits', 10n ** 4_096n],
  ];

  class Service {
    @Locked((key) => key as string)
    async one(_key: unknown): Promise<void> {}

    @Locked((key) => ['a', key as string])
    async list(_key: unknown): Promise<void> {}
  }

  const doors: readonly (readonly [string, (key: string) => unknown])[] = [
    ['getLock', (key) => getLock(key)],
    ['getLock with a category', (key) => getLock(key, { category: 'c' })],
    ['lock.acquire', (key) => lock.acquire(key)],
    ['lock.tryAcquire', (key) => lock.tryAcquire(key)],
    ['lock.run', (key) => lock.run(key, () => {})],
    ['lock.release', (key) => lock.release(key)],
    ['@Locked', (key) => new Service().one(key)],
    ['@Locked with a list', (key) => new Service().list(key)],
    ['a guard', (key) => guard(key)],
    ['a guard with a list', (key) => guard(['a', key])],
  ];

  /** What a guard does with what its key function returned, for a request that has the scope of the job. */
  async function guard(keys: string | string[]): Promise<readonly Hold[]> {
    const request = {};
    processState().requests.set(request, { scope: currentScope() });
    return (await new RequestGuard(() => keys, {}).enter(request as never, [])) ?? [];
  }

  it.each(doors)('An invalid key is refused by %s, with LockKeyError and without a store call', async (_, use) => {
    const told: unknown[] = [];
    const { job, store } = setUp();
    for (const [name, key] of refused) {
      const outcome = outcomeOf(job().in(async () => use(key as string)));
      await outcome.settled;
      const { message } = outcome.error as Error;
      told.push([name, outcome.error instanceof LockKeyError, message.length < 150]);
    }
    expect(told).toEqual(refused.map(([name]) => [name, true, true]));
    expect(store.calls).toEqual([]);
  });
});

it.each([
  ['4 096 bytes', 'x'.repeat(4_096)],
  ['4 096 bytes in 2 048 characters', 'ä'.repeat(2_048)],
  ['a bigint of 4 096 digits', 10n ** 4_095n],
])('A key of %s is accepted, in a category of 256 characters too', async (_, key) => {
  const { job } = setUp();
  expect((await job().in(() => lock.acquire(key))).isHeld()).toBe(true);
  expect((await job().in(() => lock.acquire(key, { category: 'c'.repeat(256) }))).isHeld()).toBe(true);
});

/** `count` more acquires of `key`, each by a job of its own, as far as they come without time passing. */
async function line(setup: Setup, count: number, key = 'key'): Promise<Outcome<Hold>[]> {
  const outcomes = Array.from({ length: count }, () => outcomeOf(setup.job().in(() => lock.acquire(key))));
  await setup.clock.settle();
  return outcomes;
}

/** How many of them wait, hold, and were refused with which message. */
function tally(outcomes: readonly Outcome<Hold>[]): { waiting: number; held: number; refused: string[] } {
  const rejected = outcomes.filter(({ state }) => state === 'rejected');
  for (const { error } of rejected) expect(error).toBeInstanceOf(LockLimitError);
  return {
    waiting: outcomes.filter(({ state }) => state === 'pending').length,
    held: outcomes.filter(({ state }) => state === 'fulfilled').length,
    refused: rejected.map(({ error }) => (error as Error).message),
  };
}

const keyIsFull = 'Too many requests wait for this lock';
const processIsFull = 'Too many requests of this process wait for locks';

describe.each<[string, number, LocksOptions]>([
  ['1', 1, { maxWaitersPerKey: 1 }],
  ['2', 2, { maxWaitersPerKey: 2 }],
  ['7', 7, { maxWaitersPerKey: 7 }],
  ['1 000, the default', 1_000, {}],
])('maxWaitersPerKey of %s', (_, max, options) => {
  it('maxWaitersPerKey lets exactly as many wait for one key, over two processes, and one more for each that is granted', async () => {
    const setup = setUp(options);
    const other = setup.sibling(options);
    const first = await taken(setup);
    const half = Math.ceil(max / 2);
    const waiters = [...(await line(setup, half)), ...(await line(other, max - half))];
    expect(tally(waiters)).toEqual({ waiting: max, held: 0, refused: [] });
    const beyond = [...(await line(setup, 1)), ...(await line(other, 2))];
    expect(tally(beyond)).toEqual({ waiting: 0, held: 0, refused: [keyIsFull, keyIsFull, keyIsFull] });
    // Of no concern to other keys, nor to those who do not wait.
    expect(tally(await line(setup, 2, 'another'))).toEqual({ waiting: 1, held: 1, refused: [] });
    expect(await setup.job().in(() => lock.tryAcquire('key'))).toBeNull();

    await first.release();
    await setup.clock.settle();
    expect(tally(waiters)).toEqual({ waiting: max - 1, held: 1, refused: [] });
    expect(tally(await line(other, 2))).toEqual({ waiting: 1, held: 0, refused: [keyIsFull] });
  });
});

describe.each<[string, number, LocksOptions]>([
  ['1', 1, { maxWaiters: 1 }],
  ['2', 2, { maxWaiters: 2 }],
  ['7', 7, { maxWaiters: 7 }],
  ['1 001', 1_001, { maxWaiters: 1_001 }],
])('maxWaiters of %s', (_, max, options) => {
  it('maxWaiters lets exactly as many wait in a process, over all keys, and one more for each that is granted', async () => {
    const setup = setUp(options);
    const keys = Array.from({ length: Math.ceil(max / 1_000) }, (_, index) => `key ${index}`);
    const holds: Hold[] = [];
    for (const key of keys) holds.push(await setup.job('holder').in(() => lock.acquire(key)));
    const waiters: Outcome<Hold>[] = [];
    for (const key of keys) waiters.push(...(await line(setup, Math.min(max - waiters.length, 1_000), key)));
    expect(tally(waiters)).toEqual({ waiting: max, held: 0, refused: [] });
    // Who comes is refused once it would have to wait, and leaves nothing in a queue.
    expect(tally(await line(setup, 3, 'another'))).toEqual({
      waiting: 0,
      held: 1,
      refused: [processIsFull, processIsFull],
    });
    expect((await setup.store.inspect('another')).waiters).toEqual([]);
    expect(setup.store.calls.findLast(({ operation }) => operation === 'acquire')).toMatchObject({
      terms: { queue: false },
    });
    // Of no concern to other processes, nor to those who do not wait: the holder's own, in another scope, and tries.
    await setup.job('holder').in(() => lock.run(keys[0]!, () => {}));
    const elsewhere = await line(setup.sibling(options), 1, 'another');
    expect(tally(elsewhere)).toEqual({ waiting: 1, held: 0, refused: [] });
    expect(await setup.job().in(() => lock.tryAcquire('one more'))).not.toBeNull();

    await holds[0]!.release();
    await setup.clock.settle();
    expect(tally(waiters)).toEqual({ waiting: max - 1, held: 1, refused: [] });
    expect(tally([await queued(setup)])).toEqual({ waiting: 0, held: 1, refused: [] });
    expect(tally(await line(setup, 2))).toEqual({ waiting: 1, held: 0, refused: [processIsFull] });
  });
});

describe('maxWaiters', () => {
  const keys = Array.from({ length: 50 }, (_, index) => `key-${index}`);
  /** One acquire of each key, all of them in one turn, by jobs of their own. */
  const burst = (setup: Setup) => keys.map((key) => outcomeOf(setup.job().in(() => lock.acquire(key))));

  it('maxWaiters lets a burst on free keys through, however many are on their way to the store', async () => {
    const setup = setUp({ maxWaiters: 1 });
    const outcomes = burst(setup);
    await setup.clock.settle();
    expect(tally(outcomes)).toEqual({ waiting: 0, held: 50, refused: [] });
  });

  it('maxWaiters does not count tries: one that waits still may', async () => {
    const setup = setUp({ maxWaiters: 1 });
    await taken(setup);
    const answer = setup.store.gate('acquire');
    const attempt = outcomeOf(setup.job().in(() => lock.tryAcquire('another')));
    const waiter = await queued(setup);
    await setup.clock.settle();
    expect([attempt.state, waiter.state]).toEqual(['pending', 'pending']);
    answer();
    await attempt.settled;
    expect(setup.store.count('release')).toBe(0);
  });

  it('maxWaiters lets no more of a burst on taken keys wait, over all keys, and the others leave the queues', async () => {
    const setup = setUp({ maxWaiters: 3 });
    const holds: Hold[] = [];
    for (const key of keys) holds.push(await setup.job().in(() => lock.acquire(key)));
    const outcomes = burst(setup);
    await setup.clock.settle();
    const refused = Array(47).fill(processIsFull);
    expect(tally(outcomes)).toEqual({ waiting: 3, held: 0, refused });
    const inLine = await Promise.all(keys.map(async (key) => (await setup.store.inspect(key)).waiters.length));
    expect(inLine.filter((count) => count > 0)).toEqual([1, 1, 1]);
    await Promise.all(holds.map((hold) => hold.release()));
    await setup.clock.settle();
    expect(tally(outcomes)).toEqual({ waiting: 0, held: 3, refused });
  });

  it('maxWaiters counts the present waiters, not the past ones', async () => {
    const setup = setUp({ maxWaiters: 2 });
    for (let n = 0; n < 5; n++) {
      const hold = await taken(setup);
      const granted = await queued(setup);
      const late = await queued(setup, { waitMs: 10 });
      await setup.clock.advance(10);
      await hold.release();
      await setup.clock.settle();
      expect([granted.state, late.error]).toEqual(['fulfilled', expect.any(LockTimeoutError)]);
      await granted.value?.release();
    }
  });

  it('maxWaiters counts those that wait for another branch of their request, too', async () => {
    const setup = setUp({ maxWaiters: 1 });
    const work = gate();
    const branches: Outcome<unknown>[] = [];
    const around = setup.job().in(() =>
      lock.run('key', () => {
        for (let n = 0; n < 3; n++) branches.push(outcomeOf(lock.run('key', () => work)));
        return work;
      }),
    );
    await setup.clock.settle();
    expect(branches.map(({ state }) => state)).toEqual(['pending', 'pending', 'rejected']);
    expect(branches[2]?.error).toBeInstanceOf(LockLimitError);
    work.open();
    await around;
    await setup.clock.settle();
    expect(branches.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  });
});

describe.each<[string, number, LocksOptions]>([
  ['1', 1, { maxReentry: 1 }],
  ['2', 2, { maxReentry: 2 }],
  ['64, the default', 64, {}],
])('maxReentry of %s', (_, max, options) => {
  const enter = (depth: number): Promise<number> =>
    lock.run('key', () => (depth === 1 ? getLock('key').holdCount() : enter(depth - 1)));

  it('maxReentry lets a scope nest exactly as deep, and its outer holds outlive the refusal', async () => {
    const { job, store } = setUp(options);
    const own = job();
    expect(await own.in(() => enter(max))).toBe(max);
    await expect(own.in(() => enter(max + 1))).rejects.toThrow(
      new LockLimitError(`The lock was re-entered ${max} times without a release`),
    );
    expect(await store.remains()).toEqual([]);
  });

  it('maxReentry counts what is held now, in this scope and on this key', async () => {
    const { job } = setUp(options);
    const own = job('trace');
    const holds: Hold[] = [];
    for (let count = 0; count < max; count++) holds.push(await own.in(() => lock.acquire('key')));
    const refused = () => expect(own.in(() => lock.acquire('key'))).rejects.toThrow(LockLimitError);
    await refused();
    await expect(own.in(() => lock.tryAcquire('key'))).rejects.toThrow(LockLimitError);
    expect(holds.map((hold) => hold.isHeld())).toEqual(holds.map(() => true));
    expect((await own.in(() => lock.acquire('another'))).isHeld()).toBe(true);
    expect((await job('trace').in(() => lock.acquire('key'))).isHeld()).toBe(true);

    await holds.shift()!.release();
    expect((await own.in(() => lock.acquire('key'))).isHeld()).toBe(true);
    await refused();
  });
});
