import { LockConfigError, type LockEvents, lock } from '../../../src/core/index.ts';
import { coreTests, outcomeOf, queued, type Setup, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();
const ends = ['granted', 'refused', 'timeout', 'aborted', 'deadlock'] as const;

/** The ends of acquires, as their events tell them: with the reason of a refusal. */
function watch(setup: Setup): string[] {
  const seen: string[] = [];
  for (const name of ends) {
    setup.locks.on(name, (event) => {
      const { reason } = event as Partial<LockEvents['refused']>;
      seen.push(reason === undefined ? name : `${name} ${reason}`);
    });
  }
  return seen;
}

describe('Every acquire ends in exactly one event', () => {
  const error = new Error('down');

  function itEnds(how: string, expected: string[], play: (setup: Setup) => Promise<unknown>): void {
    it(`An acquire ends as ${how}`, async () => {
      const setup = setUp();
      const seen = watch(setup);
      await play(setup);
      await setup.clock.settle();
      expect(seen).toEqual(expected);
    });
  }

  itEnds('granted, if the key is free', ['granted'], (setup) => taken(setup));

  itEnds('refused as busy, if it does not wait', ['granted', 'refused busy', 'refused busy'], async (setup) => {
    await taken(setup);
    await queued(setup, { waitMs: 0 });
    await setup.job().in(() => lock.tryAcquire('key'));
  });

  itEnds('timeout, if it waits too long', ['granted', 'timeout'], async (setup) => {
    await taken(setup);
    await queued(setup, { waitMs: 100 });
    await setup.clock.advance(100);
  });

  itEnds('aborted, by its signal, before and while it waits', ['granted', 'aborted', 'aborted'], async (setup) => {
    await taken(setup);
    const controller = new AbortController();
    await queued(setup, { signal: controller.signal });
    controller.abort();
    await queued(setup, { signal: controller.signal });
  });

  itEnds('deadlock, if a reader beside others asks to write', ['granted', 'granted', 'deadlock'], async (setup) => {
    await taken(setup, { mode: 'read' });
    const job = setup.job();
    await job.in(() => lock.acquire('key', { mode: 'read' }));
    await outcomeOf(job.in(() => lock.acquire('key'))).settled;
  });

  itEnds('refused for a limit, if it is re-entered too often', ['granted', 'refused limit'], async (setup) => {
    const job = setup.job();
    await job.in(() => lock.acquire('key'));
    for (let n = 0; n < 64; n++) await outcomeOf(job.in(() => lock.acquire('key'))).settled;
  });

  // `z` was free at first, and was released for the time of the wait.
  itEnds(
    'granted for each key of a batch that has to wait for some of them, or refused if it does not wait',
    ['granted', 'granted', 'granted', 'refused busy', 'granted', 'granted'],
    async (setup) => {
      const hold = await taken(setup);
      const waiting = setup.job().in(() => lock.runAll(['a', 'key', 'z'], () => 1));
      await setup.clock.settle();
      await outcomeOf(setup.job().in(() => lock.runAll(['a', 'key'], () => 1, { waitMs: 0 }))).settled;
      await hold.release();
      await waiting;
    },
  );

  itEnds('refused for the store, if that fails', ['refused store'], async (setup) => {
    setup.store.next('acquire', { kind: 'rejected', error });
    await queued(setup);
  });

  itEnds('refused for a lost hold, if it would re-enter it', ['granted', 'refused lost'], async (setup) => {
    const job = setup.job();
    await job.in(() => lock.acquire('key', { renew: false, leaseMs: 100 }));
    await setup.clock.advance(200);
    await outcomeOf(job.in(() => lock.acquire('key'))).settled;
  });

  itEnds(
    'refused as closed, if the Locks is closing',
    ['granted', 'refused closed', 'refused closed'],
    async (setup) => {
      await taken(setup);
      await queued(setup);
      const closing = setup.locks.close({ drainMs: 0 });
      await queued(setup);
      await setup.clock.advance(60_000);
      await closing;
    },
  );

  it('A mistake in the options of an acquire ends in no event', async () => {
    const setup = setUp();
    const seen = watch(setup);
    await expect(taken(setup, { leaseMs: -1 })).rejects.toBeInstanceOf(LockConfigError);
    expect(seen).toEqual([]);
  });
});

describe('Every grant ends in exactly one of released and lost', () => {
  const watchEnds = (setup: Setup): string[] => {
    const seen: string[] = [];
    for (const name of ['released', 'lost'] as const) setup.locks.on(name, () => void seen.push(name));
    return seen;
  };

  it('A grant ends in released if the store never replies to the release: the lease has expired then', async () => {
    const setup = setUp();
    const seen = watchEnds(setup);
    const hold = await taken(setup, { leaseMs: 1_000 });
    setup.store.always('release', { kind: 'lostCall' });
    const released = outcomeOf(hold.release());
    await setup.clock.advance(2_000);
    expect([released.state, seen]).toEqual(['rejected', []]);
    await setup.clock.advance(10_000);
    expect(seen).toEqual(['released']);
  });

  it('A grant ends in released if the store lost its data while the release was repeated', async () => {
    const setup = setUp();
    const seen = watchEnds(setup);
    const hold = await taken(setup);
    setup.store.next('release', { kind: 'lostCall' });
    const released = outcomeOf(hold.release());
    await setup.store.forget();
    await setup.clock.advance(10_000);
    expect([released.state, seen]).toEqual(['rejected', ['released']]);
  });

  it('A grant ends in lost, and not in released afterwards, if its lease ended before its release', async () => {
    const setup = setUp();
    const seen = watchEnds(setup);
    const hold = await taken(setup, { renew: false, leaseMs: 100 });
    await setup.clock.advance(200);
    await outcomeOf(hold.release()).settled;
    expect(seen).toEqual(['lost']);
  });
});
