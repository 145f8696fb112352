import * as own from '../../src/core/index.ts';
import { coreTests, outcomeOf, queued, type Setup, taken } from './set-up.ts';

const setUp = coreTests();

/** Another installed copy of the package, with classes of its own. */
function otherCopy(): typeof own {
  let copy = own;
  jest.isolateModules(() => {
    copy = jest.requireActual<typeof own>('../../src/core/index.ts');
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

describe('with a `Locks` of another installed copy of this package', () => {
  const { lock, LockStoreError } = otherCopy();

  it('a try to write answers null where its owner reads beside others', async () => {
    const setup = setUp();
    await taken(setup, { mode: 'read' });
    const job = setup.job();
    await job.in(() => lock.acquire('key', { mode: 'read' }));
    expect(await job.in(() => lock.tryAcquire('key'))).toBeNull();
  });

  it('a batch that ran out of time says how long all of it waited', async () => {
    const setup = setUp();
    const first = await setup.job().in(() => lock.acquire('first'));
    await taken(setup);
    const outcome = outcomeOf(setup.job().in(() => lock.acquireAll(['first', 'key'], { waitMs: 500 })));
    await setup.clock.advance(300);
    await first.release();
    await setup.clock.advance(200);
    expect(outcome.error).toMatchObject({ code: 'ERR_LOCK_TIMEOUT', key: 'key', waitedMs: 500 });
  });

  it('what a batch fails with tells of all its keys', async () => {
    const setup = setUp();
    const error = await rejection(setup, async () => {
      const batch = await lock.acquireAll(['a', 'b']);
      setup.store.always('renew', { kind: 'rejected', error: new Error('down') });
      return batch.extend(60_000);
    });
    expect(error).toMatchObject({ code: 'ERR_LOCK_STORE', cause: expect.any(AggregateError) });
  });

  it('an error of its store is told as it is', async () => {
    const setup = setUp();
    const error = new LockStoreError('refused', { outcome: 'not-applied' });
    setup.store.always('acquire', { kind: 'rejected', error });
    expect((await queued(setup)).error).toMatchObject({ message: 'refused', outcome: 'not-applied' });
  });
});

it('works beside what a copy of another version keeps for the process', async () => {
  const shared = globalThis as { [state: symbol]: unknown };
  const slot = Symbol.for('reenlock');
  const before = shared[slot];
  shared[slot] = { version: 0 };
  try {
    const { createLocks, currentTrace, MemoryStore, runInTrace } = otherCopy();
    const locks = createLocks({ store: new MemoryStore() });
    expect(await runInTrace(() => currentTrace()?.traceId, { locks, traceId: 'own' })).toBe('own');
    await locks.close();
  } finally {
    shared[slot] = before;
  }
});
