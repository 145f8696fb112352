import {
  type AcquireOptions,
  type BatchHold,
  getLock,
  type Hold,
  LockAbortedError,
  LockConfigError,
  LockKeyError,
  LockLimitError,
  LockScopeError,
  LockStoreError,
  type Locks,
  LockTimeoutError,
  lock,
} from '../../../src/core/index.ts';
import { Batch } from '../../../src/core/lock/batch.ts';
import { lockName } from '../../../src/core/model/key.ts';
import { runtimeOf } from '../../../src/core/runtime/locks.ts';
import { Scope } from '../../../src/core/scope/scope.ts';
import { coreTests, type Job, type Outcome, outcomeOf, type Setup } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const refused = { kind: 'rejected', error: new Error('down') } as const;

/** A batch by a job, one of its own unless another is given, as far as it comes without time passing. */
async function batch(
  setup: Setup,
  keys: readonly (string | number | bigint)[],
  options?: AcquireOptions,
  job: Job = setup.job('batch'),
): Promise<Outcome<BatchHold>> {
  return setup.clock.settled(outcomeOf(job.in(() => lock.acquireAll(keys, options))));
}

/** Somebody else's hold. */
function takenBy(setup: Setup, key: string, options?: AcquireOptions): Promise<Hold> {
  return setup.job('other').in(() => lock.acquire(key, options));
}

/** Of each key: whose it is, and who waits for it. */
async function seen({ store }: Setup, ...keys: string[]): Promise<string[]> {
  const lines: string[] = [];
  for (const key of keys) {
    const { holds, waiters } = await store.inspect(key);
    const owners = (entries: readonly { readonly owner: string }[]) => entries.map(({ owner }) => owner).join(' ');
    lines.push(`${key}: ${owners(holds)} < ${owners(waiters)}`.trim());
  }
  return lines;
}

const free = (...keys: string[]) => keys.map((key) => `${key}:  <`);

describe('acquireAll', () => {
  it('acquireAll holds every key once, and returns the holds by key as the caller named them', async () => {
    const setup = setUp();
    const { value } = await batch(setup, ['b', 42, 'a', '42', 42n, 'b']);
    expect([...value!.holds].map(([key, hold]) => [key, hold.key, hold.isHeld()])).toEqual([
      ['b', 'b', true],
      ['42', '42', true],
      ['a', 'a', true],
    ]);
    expect(await seen(setup, '42', 'a', 'b')).toEqual(['42: batch <', 'a: batch <', 'b: batch <']);
    await value!.release();
    expect(await setup.store.remains()).toEqual([]);
  });

  it.each([2, 100])(
    'acquireAll sends all %d acquires before the first reply, and each once if they are free',
    async (length) => {
      const { job, store, clock } = setUp();
      const keys = Array.from({ length }, (_, index) => index);
      const outcome = outcomeOf(job().in(() => lock.acquireAll(keys)));
      expect(store.count('acquire')).toBe(length);
      await clock.settle();
      expect(outcome.state).toBe('fulfilled');
      expect(store.count('acquire')).toBe(length);
      const released = outcome.value!.release();
      expect(store.count('release')).toBe(length);
      await released;
    },
  );

  it('acquireAll takes the keys in an order that is the same in every process, whatever its language', async () => {
    const setup = setUp();
    const granted = setup.events('granted');
    await batch(setup, ['ä', 'a', 'z', 'B', '10', '9']);
    expect(granted.map(({ key }) => key)).toEqual(['10', '9', 'B', 'a', 'z', 'ä']);
  });

  it('acquireAll keeps the keys before the first taken one, releases the rest, and waits for that one alone', async () => {
    const setup = setUp();
    const other = await takenBy(setup, 'b');
    const outcome = await batch(setup, ['d', 'c', 'b', 'a']);
    expect(await seen(setup, 'a', 'b', 'c', 'd')).toEqual(['a: batch <', 'b: other < batch', ...free('c', 'd')]);
    await other.release();
    await setup.clock.settle();
    expect(outcome.state).toBe('fulfilled');
    expect(await seen(setup, 'a', 'b', 'c', 'd')).toEqual(['a: batch <', 'b: batch <', 'c: batch <', 'd: batch <']);
  });

  it('acquireAll never stands in two queues', async () => {
    const setup = setUp();
    const holds: Hold[] = [];
    for (const key of ['a', 'b', 'c', 'd', 'e']) holds.push(await takenBy(setup, key));
    const waiting = setup.events('waiting');
    const outcome = await batch(setup, ['e', 'd', 'c', 'b', 'a']);
    for (const [index, hold] of holds.entries()) {
      expect(waiting).toHaveLength(index + 1);
      const all = await seen(setup, 'a', 'b', 'c', 'd', 'e');
      expect(all.filter((line) => line.endsWith('< batch'))).toEqual([`${hold.key}: other < batch`]);
      await hold.release();
      await setup.clock.settle();
    }
    expect(outcome.state).toBe('fulfilled');
    expect(waiting.map(({ key }) => key)).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('acquireAll waits for a single key as acquire does, without a try before', async () => {
    const setup = setUp();
    const other = await takenBy(setup, 'a');
    const calls = setup.store.count('acquire');
    const outcome = await batch(setup, ['a', 'a']);
    expect(setup.store.count('acquire')).toBe(calls + 1);
    expect(await seen(setup, 'a')).toEqual(['a: other < batch']);
    await other.release();
    await setup.clock.settle();
    expect(outcome.state).toBe('fulfilled');
  });
});

it('A batch for a handler whose client has disconnected makes no store call', async () => {
  const setup = setUp();
  const scope = new Scope(runtimeOf(setup.locks), 'request', {});
  scope.abort('gone');
  const names = [lockName('a'), lockName('b')];
  await expect(new Batch(scope.root, names, {}, 'guard').acquire()).rejects.toThrow(LockAbortedError);
  expect(setup.store.count('acquire')).toBe(0);
  scope.end();
});

it('A failed batch rejects once all of its releases have replies, the first ones too', async () => {
  const setup = setUp();
  await takenBy(setup, 'b');
  const scope = new Scope(runtimeOf(setup.locks), 'request', {});
  const batch = new Batch(scope.root, [lockName('a'), lockName('b'), lockName('c')], { waitMs: 100 }, 'guard');
  // That of the key behind the one that is not free.
  const open = setup.store.gate('release');
  const acquired = outcomeOf(batch.acquire());
  await setup.clock.advance(100);
  expect(acquired.error).toBeInstanceOf(LockTimeoutError);
  const over = await setup.clock.settled(outcomeOf(batch.release()));
  expect([over.state, setup.store.count('release')]).toEqual(['pending', 3]);
  open();
  await setup.clock.settle();
  expect(over.state).toBe('fulfilled');
  scope.end();
});

describe('waitMs of a batch', () => {
  it('waitMs of a batch is for all keys together; the error names the taken key, and the whole wait', async () => {
    const setup = setUp();
    const first = await takenBy(setup, 'b');
    await takenBy(setup, 'd');
    const outcome = await batch(setup, ['a', 'b', 'c', 'd', 'e'], { waitMs: 5_000 });
    await setup.clock.advance(3_000);
    await first.release();
    await setup.clock.advance(1_999);
    expect(outcome.state).toBe('pending');
    expect(await seen(setup, 'a', 'b', 'c')).toEqual(['a: batch <', 'b: batch <', 'c: batch <']);
    await setup.clock.advance(1);
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', key: 'd', waitedMs: 5_000 });
    expect((outcome.error as LockTimeoutError).retryAfterMs).toBeGreaterThan(0);
    await setup.clock.settle();
    expect(await seen(setup, 'a', 'b', 'c', 'd', 'e')).toEqual([...free('a', 'b', 'c'), 'd: other <', ...free('e')]);
  });

  it.each([
    ['tries the rest', 10_000, 9_900, ['a', 'b', 'c', 'd']],
    ['asks for the last key', 10_000, 9_900, ['a', 'b', 'c']],
    ['has less of it than storeTimeoutMs', 1_000, 900, ['a', 'b', 'c', 'd']],
  ])('waitMs of a batch is not exceeded by a store that falls silent as it %s', async (_, waitMs, grantedMs, keys) => {
    const setup = setUp();
    const other = await takenBy(setup, 'b');
    const outcome = await batch(setup, keys, { waitMs });
    await setup.clock.advance(grantedMs);
    setup.store.always('acquire', { kind: 'lostCall' });
    await other.release();
    await setup.clock.settle();
    const mostMs = Math.max(waitMs, setup.locks.settings.storeTimeoutMs) + 100;
    await setup.clock.advance(mostMs - grantedMs);
    // The store had less time than `storeTimeoutMs`.
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', waitedMs: mostMs });
    await setup.clock.settle();
    expect(await setup.store.remains()).toEqual([]);
  });

  it('waitMs of a batch leaves a moment for the keys behind one that was granted at its end', async () => {
    const setup = setUp();
    const other = await takenBy(setup, 'a');
    const outcome = await batch(setup, ['a', 'b'], { waitMs: 5_000 });
    await setup.clock.advance(4_990);
    setup.store.always('acquire', { kind: 'lateReply', ms: 50 });
    await other.release();
    await setup.clock.advance(60);
    expect(outcome.value?.isHeld()).toBe(true);
  });

  it('waitMs of a batch does not end earlier if the wall clock is set forward meanwhile', async () => {
    const setup = setUp();
    const [first, second] = [await takenBy(setup, 'b'), await takenBy(setup, 'd')];
    const outcome = await batch(setup, ['a', 'b', 'c', 'd'], { waitMs: 5_000 });
    await setup.clock.advance(1_000);
    setup.clock.jumpWall(6_000);
    await first.release();
    await setup.clock.advance(3_000);
    await second.release();
    await setup.clock.settle();
    expect(outcome.value?.isHeld()).toBe(true);
  });

  it('waitMs 0 of a batch is reported as 0, even if the store took its time', async () => {
    const setup = setUp();
    await takenBy(setup, 'b');
    setup.store.always('acquire', { kind: 'lateReply', ms: 50 });
    const outcome = await batch(setup, ['a', 'b', 'c'], { waitMs: 0 });
    await setup.clock.advance(200);
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', key: 'b', waitedMs: 0 });
  });

  it('waitMs 0 of a batch takes what is free at once and is never queued', async () => {
    const setup = setUp();
    const [refused, waiting] = [setup.events('refused'), setup.events('waiting')];
    expect((await batch(setup, ['a', 'b'], { waitMs: 0 })).state).toBe('fulfilled');
    const second = await batch(setup, ['0', 'a', 'b', 'c'], { waitMs: 0 }, setup.job('second'));
    expect(second.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', key: 'a', waitedMs: 0 });
    expect([refused.map(({ key }) => key), waiting]).toEqual([['a'], []]);
    await setup.clock.settle();
    expect(await seen(setup, '0', 'a', 'c')).toEqual([...free('0'), 'a: batch <', ...free('c')]);
  });
});

describe('A batch that fails leaves nothing held and nothing queued', () => {
  const expectNothing = async (setup: Setup) => {
    await setup.clock.settle();
    expect(await seen(setup, 'a', 'b', 'c')).toEqual([...free('a'), 'b: other <', ...free('c')]);
  };

  it.each<[string, object, (ends: { job: Job; stop: AbortController; locks: Locks }) => unknown]>([
    [
      'its signal is aborted',
      { code: 'ERR_LOCK_ABORTED', key: 'b', cause: 'enough' },
      ({ stop }) => stop.abort('enough'),
    ],
    ['its job has ended', { code: 'ERR_LOCK_SCOPE' }, ({ job }) => job.end()],
    ['the Locks is closed', { code: 'ERR_LOCK_CLOSED' }, ({ locks }) => locks.close()],
  ])('A batch leaves nothing when %s', async (_, refusal, end) => {
    const setup = setUp();
    await takenBy(setup, 'b');
    const [sibling, stop] = [setup.sibling(), new AbortController()];
    const job = sibling.job('batch');
    const outcome = await batch(sibling, ['a', 'b', 'c'], { signal: stop.signal }, job);
    await end({ job, stop, locks: sibling.locks });
    await outcome.settled;
    expect(outcome.error).toMatchObject(refusal);
    await expectNothing(setup);
  });

  it('A batch leaves nothing when its signal is aborted while the tries are on their way', async () => {
    const setup = setUp();
    await takenBy(setup, 'b');
    const controller = new AbortController();
    const answer = setup.store.gate('acquire');
    const outcome = await batch(setup, ['a', 'b', 'c'], { signal: controller.signal });
    controller.abort();
    answer();
    await outcome.settled;
    expect(outcome.error).toBeInstanceOf(LockAbortedError);
    await expectNothing(setup);
  });

  it.each([0, 1, 2, 3])(
    'A batch leaves nothing when its job has ended %i turns after the store has replied, also with `waitMs: 0`',
    async (turns) => {
      const setup = setUp();
      const job = setup.job('batch');
      const answer = setup.store.gate('acquire');
      const outcome = await batch(setup, ['a', 'c'], { waitMs: 0 }, job);
      answer();
      for (let turn = 0; turn < turns; turn += 1) await null;
      void job.end();
      await outcome.settled;
      expect(outcome.error).toBeInstanceOf(LockScopeError);
      await setup.clock.settle();
      expect(await seen(setup, 'a', 'c')).toEqual([...free('a'), ...free('c')]);
    },
  );

  it.each(['a', 'b', 'c'])('A batch leaves nothing when the store fails at %s', async (key) => {
    const setup = setUp();
    for (const name of ['a', 'b', 'c']) {
      if (name === key) setup.store.next('acquire', refused);
      else setup.store.gate('acquire')();
    }
    const outcome = await batch(setup, ['a', 'b', 'c']);
    expect(outcome.error).toBeInstanceOf(LockStoreError);
    await setup.clock.advance(100);
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A batch leaves nothing when the store does not reply, within storeTimeoutMs', async () => {
    const setup = setUp({ storeTimeoutMs: 500 });
    setup.store.gate('acquire')();
    setup.store.next('acquire', { kind: 'lostReply' });
    const outcome = await batch(setup, ['a', 'b', 'c']);
    await setup.clock.advance(500);
    expect(outcome.error).toBeInstanceOf(LockStoreError);
    await setup.clock.settle();
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A batch times out if the store has not replied about its last key shortly after its time, and leaves nothing', async () => {
    const setup = setUp();
    const other = await takenBy(setup, 'a');
    const outcome = await batch(setup, ['a', 'b'], { waitMs: 5_000 });
    await setup.clock.advance(4_990);
    setup.store.next('acquire', { kind: 'lateReply', ms: 500 });
    await other.release();
    await setup.clock.advance(100);
    expect(outcome.state).toBe('pending');
    await setup.clock.advance(10);
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', key: 'b', waitedMs: 5_100 });
    await setup.clock.settle();
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A batch leaves nothing when too many of its process wait; its tries are not counted', async () => {
    const setup = setUp({ maxWaiters: 1 });
    await takenBy(setup, 'b');
    await batch(setup, ['b'], {}, setup.job('waiter'));
    expect((await batch(setup, ['x', 'y', 'z'], {}, setup.job('free'))).state).toBe('fulfilled');
    const calls = setup.store.count('acquire');
    const outcome = await batch(setup, ['a', 'b', 'c']);
    expect(outcome.error).toBeInstanceOf(LockLimitError);
    // Its tries, and once for the one that is not free.
    expect(setup.store.count('acquire')).toBe(calls + 4);
    await setup.clock.settle();
    expect(await seen(setup, 'a', 'b', 'c')).toEqual([...free('a'), 'b: other < waiter', ...free('c')]);
  });

  it('A batch of which one release fails releases the others, and that one is tried again', async () => {
    const setup = setUp();
    const other = await takenBy(setup, 'c');
    setup.store.next('release', refused);
    const outcome = await batch(setup, ['a', 'b', 'c'], { waitMs: 100 });
    await setup.clock.advance(100);
    // Not the store's error: what it is refused with is that the key was not free.
    expect(outcome.error).toBeInstanceOf(LockTimeoutError);
    await setup.clock.advance(1_000);
    expect(await seen(setup, 'a', 'b', 'c')).toEqual([...free('a', 'b'), 'c: other <']);
    await other.release();
  });
});

it('A failure of the store behind a taken key does not count: the order of the keys decides', async () => {
  const setup = setUp();
  const other = await takenBy(setup, 'a');
  setup.store.gate('acquire')();
  setup.store.next('acquire', refused);
  const outcome = await batch(setup, ['a', 'b', 'c']);
  expect(outcome.state).toBe('pending');
  await other.release();
  await setup.clock.settle();
  expect(outcome.state).toBe('fulfilled');
});

describe('A batch in a scope that holds keys', () => {
  it('A batch re-enters the keys that its scope holds, and leaves them held', async () => {
    const setup = setUp();
    const job = setup.job('batch');
    const outer = await job.in(() => lock.acquire('b'));
    const calls = setup.store.count('acquire');
    const { value } = await batch(setup, ['a', 'b', 'c'], {}, job);
    expect(setup.store.count('acquire')).toBe(calls + 2);
    expect(value!.holds.get('b')!.fence).toBe(outer.fence);
    await value!.release();
    expect(job.in(() => ['a', 'b', 'c'].map((key) => getLock(key).holdCount()))).toEqual([0, 1, 0]);
    expect(outer.isHeld()).toBe(true);
  });

  it('A batch that waits for a key re-enters the held ones once it has that key', async () => {
    const setup = setUp();
    const job = setup.job('batch');
    const outer = await job.in(() => lock.acquire('c'));
    const other = await takenBy(setup, 'b');
    const outcome = await batch(setup, ['a', 'b', 'c'], {}, job);
    expect(await seen(setup, 'a', 'b', 'c')).toEqual(['a: batch <', 'b: other < batch', 'c: batch <']);
    await other.release();
    await setup.clock.settle();
    expect(job.in(() => getLock('c').holdCount())).toBe(2);
    await outcome.value!.release();
    expect(outer.isHeld()).toBe(true);
  });

  it('A batch of which the scope has lost a key is refused, and keeps nothing', async () => {
    const setup = setUp();
    const job = setup.job('batch');
    await job.in(() => lock.acquire('b', { leaseMs: 1_000, renew: false }));
    await setup.clock.advance(1_000);
    const outcome = await batch(setup, ['a', 'b', 'c'], {}, job);
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_LOST', key: 'b' });
    await setup.clock.settle();
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A batch of which the scope holds a key maxReentry times is refused, and keeps nothing', async () => {
    const setup = setUp({ maxReentry: 1 });
    const job = setup.job('batch');
    const outer = await job.in(() => lock.acquire('b'));
    expect((await batch(setup, ['a', 'b'], {}, job)).error).toBeInstanceOf(LockLimitError);
    await setup.clock.settle();
    expect(await seen(setup, 'a', 'b')).toEqual([...free('a'), 'b: batch <']);
    await outer.release();
  });
});

describe('A key that is lost while a batch waits for others', () => {
  it('A key that was lost meanwhile is acquired again before the batch resolves', async () => {
    const setup = setUp();
    const other = await takenBy(setup, 'b');
    const outcome = await batch(setup, ['a', 'b'], { leaseMs: 1_000, renew: false });
    await setup.clock.advance(5_000);
    expect(await seen(setup, 'a')).toEqual(free('a'));
    await other.release();
    await setup.clock.settle();
    expect(outcome.value!.isHeld()).toBe(true);
    // Both of them anew: the first in the queue is no longer a claim.
    expect(outcome.value!.remainingMs()).toBeGreaterThan(900);
    expect(await seen(setup, 'a', 'b')).toEqual(['a: batch <', 'b: batch <']);
  });

  it('A batch waits for a key that was lost meanwhile if another owner has it', async () => {
    const setup = setUp();
    const other = await takenBy(setup, 'b');
    const outcome = await batch(setup, ['a', 'b'], { leaseMs: 1_000, renew: false });
    await setup.clock.advance(5_000);
    const third = await setup.job('third').in(() => lock.acquire('a'));
    await other.release();
    await setup.clock.settle();
    expect(await seen(setup, 'a', 'b')).toEqual(['a: third < batch', ...free('b')]);
    await third.release();
    await setup.clock.settle();
    expect(outcome.value!.isHeld()).toBe(true);
  });

  it('A key that was lost meanwhile is a LockLostError if no time is left', async () => {
    const setup = setUp();
    const other = await takenBy(setup, 'b');
    const outcome = await batch(setup, ['a', 'b'], { leaseMs: 1_000, renew: false, waitMs: 1_500 });
    await setup.clock.advance(1_400);
    const released = other.release();
    // The event loop was blocked: the grant comes before the timer of the wait.
    setup.clock.skip(200);
    await released;
    await outcome.settled;
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_LOST', key: 'a' });
    await setup.clock.settle();
    expect(await setup.store.remains()).toEqual([]);
  });
});

describe('What is no list of keys', () => {
  it.each<[string, unknown]>([
    ['an empty list', []],
    ['a string', 'ab'],
    ['undefined', undefined],
    ['null', null],
    ['a set', new Set(['a'])],
    ['a list with a hole', ['a', undefined]],
    ['a list with an empty key', ['a', '']],
    ['a list in a list', [['a']]],
  ])('What is no list of keys is refused without a store call: %s', async (_, keys) => {
    const { job, store } = setUp();
    const calls: (() => Promise<unknown>)[] = [
      () => lock.acquireAll(keys as string[]),
      () => lock.runAll(keys as string[], () => {}),
    ];
    for (const call of calls) {
      const outcome = outcomeOf(job().in(call));
      await outcome.settled;
      expect(outcome.error).toBeInstanceOf(LockKeyError);
    }
    expect(store.calls).toEqual([]);
  });

  it('A single key that is no list is refused by a batch with an error that names what takes one key', async () => {
    const call = setUp()
      .job()
      .in(() => lock.runAll('a' as never, () => {}));
    await expect(call).rejects.toThrow('a list, got string: for one key, write `lock.run` or `lock.acquire`');
  });

  it('A batch rejects with LockConfigError for invalid options, with LockScopeError outside of a scope', async () => {
    const { job, store } = setUp();
    const call = job().in(() => lock.acquireAll(['a'], { waitMs: -1 }));
    await expect(call).rejects.toThrow(LockConfigError);
    await expect(lock.acquireAll(['a', 'b'])).rejects.toThrow(LockScopeError);
    await expect(lock.runAll(['a', 'b'], () => {})).rejects.toThrow(LockScopeError);
    expect(store.calls).toEqual([]);
  });

  it('The same keys in another category are other locks', async () => {
    const setup = setUp();
    await batch(setup, ['a', 'b'], { category: 'orders' });
    expect((await batch(setup, ['a', 'b'], {}, setup.job('second'))).state).toBe('fulfilled');
    const third = await batch(setup, ['b', 'a'], { category: 'orders', waitMs: 0 }, setup.job('third'));
    expect(third.error).toBeInstanceOf(LockTimeoutError);
  });
});
