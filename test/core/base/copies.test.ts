import { AsyncLocalStorage } from 'node:async_hooks';
import { processState } from '../../../src/core/base/process-state.ts';
import * as own from '../../../src/core/index.ts';
import { coreTests, outcomeOf, type Setup, taken } from '../../support/stores/set-up.ts';

const setUp = coreTests();

/** Another installed copy of the package, with classes of its own. */
function otherCopy(): typeof own {
  let copy = own;
  jest.isolateModules(() => {
    copy = jest.requireActual<typeof own>('../../../src/core/index.ts');
  });
  expect(copy.LockError).not.toBe(own.LockError);
  return copy;
}

/** What happens to a job when it locks by one copy, and its `Locks` is of the other. */
async function rejection(setup: Setup, work: () => Promise<unknown>): Promise<unknown> {
  const outcome = outcomeOf(setup.job().in(work));
  await setup.clock.advance(1_000);
  return outcome.error;
}

describe('A `Locks` of another installed copy of this package', () => {
  const { lock } = otherCopy();

  it('With another copy’s Locks, a try to write returns null if its owner reads alongside others', async () => {
    const setup = setUp();
    await taken(setup, { mode: 'read' });
    const job = setup.job();
    await job.in(() => lock.acquire('key', { mode: 'read' }));
    expect(await job.in(() => lock.tryAcquire('key'))).toBeNull();
  });

  it('With another copy’s Locks, the error of a batch has the time that it waited in all', async () => {
    const setup = setUp();
    const first = await setup.job().in(() => lock.acquire('first'));
    await taken(setup);
    const outcome = outcomeOf(setup.job().in(() => lock.acquireAll(['first', 'key'], { waitMs: 500 })));
    await setup.clock.advance(300);
    await first.release();
    await setup.clock.advance(200);
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', key: 'key', waitedMs: 500 });
  });

  it('With another copy’s Locks, the error of a batch names all of its keys', async () => {
    const setup = setUp();
    const error = await rejection(setup, async () => {
      const batch = await lock.acquireAll(['a', 'b']);
      setup.store.always('renew', { kind: 'rejected', error: new Error('down') });
      return batch.extend(60_000);
    });
    expect(error).toMatchObject({ code: 'ERR_LOCK_STORE', cause: expect.any(AggregateError) });
  });
});

it('A job of one copy runs with a `Locks` of the other', async () => {
  const { currentTrace, lock, runInTrace } = otherCopy();
  const { locks } = setUp();
  const traceIds = await runInTrace(
    async () => {
      expect((await own.lock.acquire('key')).fence).toBe((await lock.acquire('key')).fence);
      return [currentTrace()?.traceId, own.currentTrace()?.traceId];
    },
    { locks, traceId: 'job' },
  );
  expect(traceIds).toEqual(['job', 'job']);
});

describe('What the copies in a process share', () => {
  const shared = globalThis as { [state: symbol]: unknown };
  const slot = Symbol.for('reenlock');

  it('The shared state is one object under a name that all copies know, with its version', () => {
    expect(shared[slot]).toBe(processState());
    expect(processState().version).toBe(3);
  });

  it('A copy leaves the state of another version alone', async () => {
    const before = shared[slot];
    const theirs = { version: 4, branches: new AsyncLocalStorage(), created: new Set(), warned: new Map() };
    shared[slot] = theirs;
    try {
      const [a, b] = [otherCopy(), otherCopy()];
      const locks = a.createLocks({ store: new a.MemoryStore() });
      const seen = () => [a.currentTrace()?.traceId, b.currentTrace()?.traceId, theirs.branches.getStore()];
      expect(await a.runInTrace(seen, { locks, traceId: 'own' })).toEqual(['own', 'own', undefined]);
      expect(shared[slot]).toBe(theirs);
      expect(theirs.created.size).toBe(0);
      await locks.close();
    } finally {
      shared[slot] = before;
    }
  });
});
