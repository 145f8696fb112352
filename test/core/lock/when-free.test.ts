import {
  DeadlockError,
  getLock,
  LockAbortedError,
  LockConfigError,
  LockTimeoutError,
  lock,
} from '../../../src/core/index.ts';
import { configure } from '../../../src/core/runtime/default-locks.ts';
import { coreTests, outcomeOf, queued, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('whenFree', () => {
  it('resolves after the release of the holder, and leaves the key free', async () => {
    const setup = setUp();
    const hold = await taken(setup);
    const free = await setup.clock.settled(outcomeOf(setup.job().in(() => lock.whenFree('key'))));
    expect(free.state).toBe('pending');
    await hold.release();
    await free.settled;
    expect(free.state).toBe('fulfilled');
    expect(await setup.job().in(() => lock.tryAcquire('key'))).not.toBeNull();
  });

  it('resolves at once on a free key, and needs no scope', async () => {
    const setup = setUp();
    configure(setup.locks);
    await getLock('key').whenFree({ waitMs: 0 });
    await lock.whenFree('key', { category: 'cache' });
    expect(await setup.store.remains()).toEqual([]);
  });

  it('whenFree waits behind earlier waiters, and not for later ones', async () => {
    const setup = setUp();
    const hold = await taken(setup);
    const first = await queued(setup);
    const free = await setup.clock.settled(outcomeOf(setup.job().in(() => getLock('key').whenFree())));
    const later = await queued(setup);
    await hold.release();
    await first.settled;
    expect(free.state).toBe('pending');
    await first.value!.release();
    await free.settled;
    await later.settled;
    expect([free.state, later.state]).toEqual(['fulfilled', 'fulfilled']);
  });

  it('rejects with a LockTimeoutError after waitMs, and leaves the queue', async () => {
    const setup = setUp();
    await taken(setup);
    const free = outcomeOf(setup.job().in(() => lock.whenFree('key', { waitMs: 500 })));
    await setup.clock.advance(500);
    await free.settled;
    expect(free.error).toBeInstanceOf(LockTimeoutError);
    expect((await setup.locks.inspect('key')).waiters).toEqual([]);
  });

  it('ends by its signal with a LockAbortedError', async () => {
    const setup = setUp();
    await taken(setup);
    const controller = new AbortController();
    const free = outcomeOf(setup.job().in(() => lock.whenFree('key', { signal: controller.signal })));
    await setup.clock.settle();
    controller.abort();
    await free.settled;
    expect(free.error).toBeInstanceOf(LockAbortedError);
  });

  it('whenFree waits for the release of its own scope, since it never re-enters', async () => {
    const setup = setUp();
    const job = setup.job();
    const hold = await job.in(() => lock.acquire('key'));
    const free = await setup.clock.settled(outcomeOf(job.in(() => lock.whenFree('key'))));
    expect(free.state).toBe('pending');
    await hold.release();
    await free.settled;
    expect(free.state).toBe('fulfilled');
  });

  it("With mode 'read' it does not wait for readers, and many that wait for a writer are let through together", async () => {
    const setup = setUp();
    const reader = await taken(setup, { mode: 'read' });
    await setup.job().in(() => lock.whenFree('key', { mode: 'read', waitMs: 0 }));
    const whileRead = outcomeOf(setup.job().in(() => lock.whenFree('key', { waitMs: 0 })));
    await whileRead.settled;
    expect(whileRead.error).toBeInstanceOf(LockTimeoutError);
    await reader.release();
    const writer = await taken(setup);
    const waiting = [1, 2, 3].map(() => outcomeOf(setup.job().in(() => lock.whenFree('key', { mode: 'read' }))));
    await setup.clock.settle();
    const granted = setup.events('granted');
    const released = setup.events('released');
    await writer.release();
    await Promise.all(waiting.map(({ settled }) => settled));
    expect(waiting.map(({ state }) => state)).toEqual(Array(3).fill('fulfilled'));
    expect(new Set(granted.map(({ fence }) => fence)).size).toBe(1);
    expect(released).toHaveLength(4);
  });

  it('is found in a deadlock: its request holds what the holder waits for', async () => {
    const setup = setUp();
    const [one, two] = [setup.job(), setup.job()];
    await one.in(() => lock.acquire('a'));
    await two.in(() => lock.acquire('b'));
    const waits = outcomeOf(two.in(() => lock.acquire('a')));
    await setup.clock.advance(10);
    const free = outcomeOf(one.in(() => lock.whenFree('b')));
    await free.settled;
    expect(free.error).toBeInstanceOf(DeadlockError);
    await one.end();
    await waits.settled;
    expect(waits.state).toBe('fulfilled');
  });

  it.each<object>([{ reentrant: 'trace' }, { leaseMs: 500 }, { maxHoldMs: 500 }])(
    'refuses %j, which is about a hold',
    async (options) => {
      const setup = setUp();
      const [name] = Object.keys(options);
      const refusal = new RegExp(`^Expected the options of whenFree to be among .*, got \`${name}\`$`);
      await setup.job().in(async () => {
        await expect(lock.whenFree('key', options)).rejects.toThrow(refusal);
        await expect(getLock('key').whenFree(options)).rejects.toThrow(LockConfigError);
        await getLock('key', options as object).whenFree();
      });
    },
  );
});
