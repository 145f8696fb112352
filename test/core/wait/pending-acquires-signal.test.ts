import { getEventListeners } from 'node:events';
import { onAbort } from '../../../src/core/base/abort-signals.ts';
import { LockAbortedError, LocksClosedError, lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf, queued, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

describe('An acquire’s signal', () => {
  it.each<[string, (signal: AbortSignal) => Promise<unknown>]>([
    ['acquire', (signal) => lock.acquire('key', { signal })],
    ['acquire of what it holds', (signal) => lock.acquire('held', { signal })],
    ['run', (signal) => lock.run('key', () => {}, { signal })],
    ['acquireAll', (signal) => lock.acquireAll(['key', 'later'], { signal })],
  ])(
    'A signal that is already aborted refuses even a free key, without a store call, and the event reports it once (%s)',
    async (_, call) => {
      const setup = setUp();
      const aborted = setup.events('aborted');
      const job = setup.job('owner');
      await job.in(() => lock.acquire('held'));
      const outcome = await setup.clock.settled(outcomeOf(job.in(() => call(AbortSignal.abort('too late')))));
      expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_ABORTED', cause: 'too late' });
      const { key } = outcome.error as LockAbortedError;
      const parts = { key, category: undefined, mode: 'write', traceId: 'owner', branch: '' };
      expect(aborted).toEqual([{ ...parts, holdId: expect.any(String), waitedMs: 0 }]);
      expect(setup.store.count('acquire')).toBe(1);
    },
  );

  it('A signal ends the wait, and its waiter leaves the queue', async () => {
    const setup = setUp();
    const aborted = setup.events('aborted');
    const hold = await taken(setup);
    const controller = new AbortController();
    const outcome = await queued(setup, { signal: controller.signal });
    await setup.clock.advance(300);
    controller.abort();
    await setup.clock.settle();
    expect(outcome.error).toBeInstanceOf(LockAbortedError);
    expect(aborted).toMatchObject([{ key: 'key', waitedMs: 300 }]);
    await hold.release();
    expect(await setup.store.remains()).toEqual([]);
  });

  it.each([
    ['has subscribed its process, and nothing more is sent', 'subscribe', false, ['subscribe']],
    ['has granted a free key, and releases it', 'acquire', false, ['subscribe', 'acquire', 'release']],
    ['has queued the waiter, which leaves the queue', 'acquire', true, undefined],
  ] as const)(
    'A signal that is aborted before the store %s, ends the wait, and the event reports it',
    async (_, operation, isTaken, calls) => {
      const setup = setUp();
      const hold = isTaken ? await taken(setup) : undefined;
      const [aborted, granted] = [setup.events('aborted'), setup.events('granted')];
      const controller = new AbortController();
      const open = setup.store.gate(operation);
      const outcome = await queued(setup, { signal: controller.signal });
      await setup.clock.advance(30);
      controller.abort();
      open();
      await setup.clock.settle();
      expect(outcome.error).toBeInstanceOf(LockAbortedError);
      expect(aborted).toMatchObject([
        { key: 'key', traceId: expect.any(String), holdId: expect.any(String), waitedMs: 30 },
      ]);
      expect(granted).toEqual([]);
      if (calls !== undefined) expect(setup.store.calls.map((call) => call.operation)).toEqual(calls);
      await hold?.release();
      expect(await setup.store.remains()).toEqual([]);
    },
  );

  it('A signal of a call that a close refuses is reported by no event', async () => {
    const setup = setUp();
    const aborted = setup.events('aborted');
    const controller = new AbortController();
    const open = setup.store.gate('acquire');
    const outcome = await queued(setup, { signal: controller.signal });
    const closing = setup.locks.close({ drainMs: 0 });
    controller.abort();
    open();
    await setup.clock.settle();
    await closing;
    expect(outcome.error).toBeInstanceOf(LocksClosedError);
    expect(aborted).toEqual([]);
  });

  it('A signal that is aborted in the turn of the grant leaves nothing held', async () => {
    const setup = setUp();
    const hold = await taken(setup);
    const controller = new AbortController();
    const outcome = await queued(setup, { signal: controller.signal });
    const released = hold.release();
    controller.abort();
    await released;
    await setup.clock.settle();
    expect(outcome.error).toBeInstanceOf(LockAbortedError);
    expect(await setup.store.remains()).toEqual([]);
  });

  it.each(['waiting', 'aborted', 'timeout'] as const)(
    'A signal that a listener of `%s` aborts ends the wait once',
    async (event) => {
      const setup = setUp();
      const hold = await taken(setup);
      const [own, told] = [new AbortController(), [] as string[]];
      for (const name of ['waiting', 'aborted', 'timeout'] as const) {
        setup.locks.on(name, () => {
          told.push(name);
          if (name === event) own.abort();
        });
      }
      const job = setup.job();
      const outcome = outcomeOf(job.in(() => lock.acquire('key', { signal: own.signal, waitMs: 300 })));
      await setup.clock.settle();
      if (event === 'aborted') await job.end();
      await setup.clock.advance(300);
      expect(outcome.state).toBe('rejected');
      expect(told).toEqual(['waiting', event === 'timeout' ? 'timeout' : 'aborted']);
      expect(setup.store.count('release')).toBe(1);
      await hold.release();
      expect(await setup.store.remains()).toEqual([]);
    },
  );

  it('A signal that is aborted after the grant takes nothing away, and no listener stays on it', async () => {
    const setup = setUp();
    const controller = new AbortController();
    const added = jest.spyOn(controller.signal, 'addEventListener');
    const removed = jest.spyOn(controller.signal, 'removeEventListener');
    const first = await taken(setup);
    const outcome = await queued(setup, { signal: controller.signal });
    await first.release();
    await setup.clock.settle();
    controller.abort();
    expect(outcome.value?.isHeld()).toBe(true);
    expect(removed.mock.calls.length).toBe(added.mock.calls.length);
    expect(added).toHaveBeenCalled();
  });
});

describe('Many waiters with one signal', () => {
  const count = (signal: AbortSignal): number => getEventListeners(signal, 'abort').length;

  it('Many waiters with one signal share one listener, which stays until the last has gone, and returns with the next', () => {
    const { signal } = new AbortController();
    const [first, second] = [onAbort(signal, jest.fn()), onAbort(signal, jest.fn())];
    expect(count(signal)).toBe(1);
    first();
    expect(count(signal)).toBe(1);
    second();
    expect(count(signal)).toBe(0);
    const third = onAbort(signal, jest.fn());
    first();
    const fourth = onAbort(signal, jest.fn());
    expect(count(signal)).toBe(1);
    third();
    fourth();
    expect(count(signal)).toBe(0);
  });

  it('Many waiters with one signal all stop if others have gone, even those that arrived after all had gone', () => {
    const [controller, told, gone] = [new AbortController(), jest.fn(), jest.fn()];
    const { signal } = controller;
    onAbort(signal, gone)();
    onAbort(signal, told);
    onAbort(signal, gone)();
    const again = onAbort(signal, told);
    onAbort(signal, () => told('another'));
    again();
    controller.abort();
    expect([gone.mock.calls, told.mock.calls]).toEqual([[], [[], ['another']]]);
  });
});
