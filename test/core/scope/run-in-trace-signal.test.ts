import { getEventListeners, once } from 'node:events';
import { currentTrace, getLock, LockAbortedError, LockConfigError, lock, runInTrace } from '../../../src/core/index.ts';
import { gate } from '../../support/gate.ts';
import { coreTests, type Outcome, outcomeOf, stoppable, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const reason = new Error('SIGTERM');

describe("a job's signal", () => {
  it("aborts the signal of the job's scope, with its reason, and does not end the scope", async () => {
    const opened = gate();
    const [controller, outcome] = await stoppable(setUp(), async () => {
      await opened;
      return currentTrace();
    });
    controller.abort(reason);
    opened.open();
    await outcome.settled;
    expect(outcome.value?.signal.reason).toBe(reason);

    const during = await stoppable(setUp(), async () => {
      const trace = currentTrace()!;
      await once(trace.signal, 'abort');
      return [trace.signal.reason, trace.hasEnded];
    });
    during[0].abort(reason);
    await during[1].settled;
    expect(during[1].value).toEqual([reason, false]);
  });

  it('A job’s signal ends the wait of its acquires, which leave the queue', async () => {
    const setup = setUp();
    const aborted = setup.events('aborted');
    const hold = await taken(setup);
    const [controller, outcome] = await stoppable(setup, () => Promise.allSettled([lock.acquire('key'), run('key')]));
    await setup.clock.advance(300);
    controller.abort(reason);
    await setup.clock.settle();
    const refused = { status: 'rejected', reason: expect.any(LockAbortedError) };
    expect(outcome.value).toEqual([refused, refused]);
    expect(outcome.value).toMatchObject([{ reason: { cause: reason, key: 'key' } }, { reason: { cause: reason } }]);
    expect(aborted).toMatchObject([{ waitedMs: 300 }, { waitedMs: 300 }]);
    await hold.release();
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A job’s signal does so also without a reason, which signals of a polyfill do not have', async () => {
    const setup = setUp();
    const hold = await taken(setup);
    const signal = Object.assign(new EventTarget(), { aborted: false });
    const routine = async () => [(await Promise.allSettled([lock.acquire('key')]))[0], currentTrace()?.signal.reason];
    const outcome = outcomeOf(runInTrace(routine, { locks: setup.locks, signal: signal as unknown as AbortSignal }));
    await setup.clock.settle();
    signal.aborted = true;
    signal.dispatchEvent(new Event('abort'));
    await setup.clock.settle();
    const refused = { status: 'rejected', reason: expect.any(LockAbortedError) };
    expect(outcome.value).toEqual([refused, expect.objectContaining({ name: 'AbortError' })]);
    await hold.release();
  });

  it('A job’s signal takes nothing away: its holds stay renewed and can be re-entered until its routine has settled', async () => {
    const setup = setUp();
    const opened = gate();
    const [controller, outcome] = await stoppable(setup, async () => {
      const hold = await lock.acquire('key');
      await opened;
      const inner = await lock.acquire('key');
      return [hold.isHeld(), inner.fence === hold.fence, hold.signal.aborted];
    });
    controller.abort(reason);
    await setup.clock.advance(100_000);
    expect(await setup.store.remains()).toEqual(['key']);
    opened.open();
    await setup.clock.settle();
    expect(outcome.value).toEqual([true, true, false]);
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A job’s signal lets a stopped job take a free key, since half a transfer may be done, and wait for none', async () => {
    const setup = setUp();
    const told: string[] = [];
    for (const event of ['waiting', 'aborted'] as const) setup.locks.on(event, () => void told.push(event));
    const hold = await taken(setup);
    const opened = gate();
    const [controller, outcome] = await stoppable(setup, async () => {
      await opened;
      return Promise.allSettled([run('free'), lock.tryAcquire('also free'), lock.tryAcquire('key'), run('key')]);
    });
    controller.abort(reason);
    opened.open();
    await setup.clock.settle();
    expect(outcome.value).toMatchObject([
      { value: 'ran' },
      { value: { key: 'also free' } },
      { value: null },
      { reason: { code: 'ERR_LOCK_ABORTED', cause: reason } },
    ]);
    expect(told).toEqual(['waiting', 'aborted']);
    await hold.release();
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A job’s signal that is aborted during a store call leaves what the store granted, and no place in a queue', async () => {
    const setup = setUp();
    const hold = await taken(setup);
    const open = setup.store.gate('acquire');
    const openSecond = setup.store.gate('acquire');
    const [controller, outcome] = await stoppable(setup, () => Promise.allSettled([run('free'), run('key')]));
    controller.abort(reason);
    open();
    openSecond();
    await setup.clock.settle();
    expect(outcome.value).toMatchObject([{ value: 'ran' }, { reason: { code: 'ERR_LOCK_ABORTED' } }]);
    await hold.release();
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A job’s signal ends the wait if a grant that overtook the reply is too old to be used', async () => {
    const setup = setUp({ claimMs: 900, pollMs: 60_000, storeTimeoutMs: 50_000 });
    const hold = await taken(setup.sibling());
    const openReply = setup.store.gate('acquire');
    const [controller, outcome] = await stoppable(setup, () => lock.acquire('key'));
    await hold.release();
    await setup.clock.advance(700);
    controller.abort(reason);
    setup.store.always('acquire', { kind: 'lostCall' });
    openReply();
    await setup.clock.settle();
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_ABORTED', cause: reason });
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A job’s signal that is already aborted lets nothing begin', async () => {
    const { locks, store } = setUp();
    const routine = jest.fn();
    const refused = runInTrace(routine, { locks, signal: AbortSignal.abort(reason) });
    await expect(refused).rejects.toThrow(LockAbortedError);
    await expect(refused).rejects.toMatchObject({ cause: reason });
    expect(routine).not.toHaveBeenCalled();
    expect(store.calls).toEqual([]);
  });

  it('A job’s signal is left alone once the job has ended: aborting it then does nothing, and no listener stays', async () => {
    const setup = setUp();
    const controller = new AbortController();
    const { signal } = controller;
    const added = jest.spyOn(signal, 'addEventListener');
    const removed = jest.spyOn(signal, 'removeEventListener');
    const trace = await runInTrace(currentTrace, { locks: setup.locks, signal });
    expect(added).toHaveBeenCalledTimes(1);
    expect(removed.mock.calls).toEqual(added.mock.calls);
    controller.abort(reason);
    expect(trace?.signal.reason).not.toBe(reason);
  });

  it('A job’s signal also stops the work that waitUntil keeps the lock for', async () => {
    const setup = setUp();
    const other = await setup.job().in(() => lock.acquire('other'));
    const controller = new AbortController();
    let late: Outcome<string> | undefined;
    await runInTrace(
      async () => {
        const hold = await lock.acquire('key');
        const work = run('other');
        hold.waitUntil(work.catch(() => {}));
        late = outcomeOf(work);
      },
      { locks: setup.locks, signal: controller.signal },
    );
    await setup.clock.settle();
    expect(late?.state).toBe('pending');
    controller.abort(reason);
    await setup.clock.settle();
    expect(late?.error).toMatchObject({ code: 'ERR_LOCK_ABORTED', cause: reason });
    await other.release();
    expect(await setup.store.remains()).toEqual([]);
  });

  it('A job’s signal and an acquire’s own signal end the wait once, whichever is aborted first', async () => {
    const setup = setUp();
    const aborted = setup.events('aborted');
    const hold = await taken(setup);
    const own = new AbortController();
    const [controller, outcome] = await stoppable(setup, () => lock.acquire('key', { signal: own.signal }));
    own.abort(new Error('own'));
    controller.abort(reason);
    await setup.clock.settle();
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_ABORTED', cause: { message: 'own' } });
    expect(aborted).toHaveLength(1);
    await hold.release();
  });

  it('A job’s signal must be an AbortSignal', async () => {
    const { locks } = setUp();
    const wrong = runInTrace(() => {}, { locks, signal: 'SIGTERM' as never });
    await expect(wrong).rejects.toThrow(LockConfigError);
    await expect(wrong).rejects.toThrow('Expected `signal` to be an AbortSignal, got `SIGTERM` (string)');
  });

  it('A job’s signal has one listener, however many jobs and acquires it stops, and none afterwards', async () => {
    const setup = setUp();
    const controller = new AbortController();
    const { signal } = controller;
    const listeners = () => getEventListeners(signal, 'abort').length;
    const hold = await taken(setup);
    const jobs = Array.from({ length: 12 }, () =>
      runInTrace(() => lock.acquire('key'), { locks: setup.locks, signal }),
    );
    const holder = setup.job();
    const acquires = Array.from({ length: 12 }, () => holder.in(() => lock.acquire('key', { signal })));
    const outcome = await setup.clock.settled(outcomeOf(Promise.allSettled([...jobs, ...acquires])));
    expect(listeners()).toBe(1);
    controller.abort(reason);
    await setup.clock.settle();
    expect(outcome.value?.map(({ status }) => status)).toEqual(Array(24).fill('rejected'));
    expect(listeners()).toBe(0);
    await hold.release();
  });
});

function run(key: string): Promise<string> {
  return getLock(key).run(() => 'ran');
}
